import { expect, test } from "vitest";
import { findChromium, runTestFileInPage } from "../support/chromium.ts";

const chromium = findChromium();
if (chromium === undefined)
  console.warn("The kernels are not tested in a page: there is no Chromium here (CHROMIUM names one).");

test.skipIf(chromium === undefined)(
  "the kernels multiply in Chromium as they do in Node",
  { timeout: 120_000 },
  async () => {
    const result = await runTestFileInPage(chromium!, "test/unit/wasm/kernels.test.ts");
    expect(result).toEqual({ count: expect.any(Number), failures: [] });
    expect(result).not.toMatchObject({ count: 0 });
  },
);
