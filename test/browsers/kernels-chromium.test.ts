import { beforeAll, describe, expect, test } from "vitest";
import { findChromium } from "../support/launch-chromium.ts";
import { runTestFilesInPage } from "../support/chromium.ts";
import { need } from "../support/need.ts";

const chromium = findChromium();
const CHROMIUM = need("Chromium", chromium !== undefined);

const FILES = ["kernels", "vec-dots", "softmax", "flash-attention", "elementwise", "repacked", "dot-product"];

const fileOf = (name: string): string => `test/unit/wasm/${name}.test.ts`;

describe.skipIf(CHROMIUM.isMissing)(`the kernels in Chromium${CHROMIUM.note}`, () => {
  let results: Readonly<Record<string, unknown>>;
  beforeAll(async () => {
    results = await runTestFilesInPage(chromium!, FILES.map(fileOf));
  }, 300_000);

  test.each(FILES)("pass the unit tests of %s", (name) => {
    const result = results[fileOf(name)];
    expect(result).toEqual({ count: expect.any(Number), failures: [] });
    expect(result).not.toMatchObject({ count: 0 });
  });
});
