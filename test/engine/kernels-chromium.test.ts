import { expect, test } from "vitest";
import { findChromium, runTestFileInPage } from "../support/chromium.ts";

const chromium = findChromium();
if (chromium === undefined)
  console.warn("The kernels are not tested in a page: there is no Chromium here (CHROMIUM names one).");

test
  .skipIf(chromium === undefined)
  .each(["test/unit/wasm/kernels.test.ts", "test/unit/wasm/softmax.test.ts"])(
  "the kernels compute in Chromium as they do in Node: %s",
  { timeout: 120_000 },
  async (file) => {
    const result = await runTestFileInPage(chromium!, file);
    expect(result).toEqual({ count: expect.any(Number), failures: [] });
    expect(result).not.toMatchObject({ count: 0 });
  },
);
