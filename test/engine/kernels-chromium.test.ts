import { beforeAll, describe, expect, test } from "vitest";
import { findChromium, runTestFilesInPage } from "../support/chromium.ts";

const chromium = findChromium();
if (chromium === undefined)
  console.warn("The kernels are not tested in a page: there is no Chromium here (CHROMIUM names one).");

const FILES = ["kernels", "vec-dots", "softmax", "flash-attention", "elementwise", "repacked", "dot-product"];

const fileOf = (name: string): string => `test/unit/wasm/${name}.test.ts`;

describe.skipIf(chromium === undefined)(
  "what the kernels compute in Chromium is what they compute in Node",
  () => {
    let results: Readonly<Record<string, unknown>>;
    beforeAll(async () => {
      results = await runTestFilesInPage(chromium!, FILES.map(fileOf));
    }, 300_000);

    test.each(FILES)("%s", (name) => {
      const result = results[fileOf(name)];
      expect(result).toEqual({ count: expect.any(Number), failures: [] });
      expect(result).not.toMatchObject({ count: 0 });
    });
  },
);
