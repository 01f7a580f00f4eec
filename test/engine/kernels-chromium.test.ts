import { expect, test } from "vitest";
import { findChromium, runTestFileInPage } from "../support/chromium.ts";

const chromium = findChromium();
if (chromium === undefined)
  console.warn("The kernels are not tested in a page: there is no Chromium here (CHROMIUM names one).");

const FILES = ["kernels", "softmax", "flash-attention", "swiglu", "repacked"];

test.skipIf(chromium === undefined).each(FILES)(
  "what the kernels compute in Chromium is what they compute in Node: %s",
  { timeout: 120_000 },
  async (name) => {
    const result = await runTestFileInPage(chromium!, `test/unit/wasm/${name}.test.ts`);
    expect(result).toEqual({ count: expect.any(Number), failures: [] });
    expect(result).not.toMatchObject({ count: 0 });
  },
);
