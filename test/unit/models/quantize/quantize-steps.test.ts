import { setImmediate } from "node:timers/promises";
import { describe, expect, test } from "vitest";
import type { QuantizedModel, QuantizeProgress } from "../../../../src/models/quantize/quantize-options.ts";
import { QuantizeSteps } from "../../../../src/models/quantize/quantize-steps.ts";
import { fakeModel } from "../../../support/fake-models.ts";

const RESULT: QuantizedModel = {
  model: fakeModel(),
  sourceBytes: 400,
  sizeBytes: 100,
  bitsPerWeight: 8,
  fallbackTensors: 0,
};

function progress(completedBytes: number): QuantizeProgress {
  return { from: "F16", to: "Q8_0", completedBytes, totalBytes: 100 };
}

describe("the steps of a quantization", () => {
  test("end with all bytes and the result, however quick it is", async () => {
    const steps = new QuantizeSteps(async (report) => {
      for (const bytes of [1, 50, 100]) report(progress(bytes));
      return RESULT;
    });
    await steps.begun();
    const seen = await Array.fromAsync(steps);
    expect(seen.at(-2)).toMatchObject({ status: "quantizing", completedBytes: 100 });
    expect(seen.at(-1)).toEqual({ status: "success", ...RESULT });
  });

  test("fail before the first of them when the work cannot begin", async () => {
    const steps = new QuantizeSteps(async () => await Promise.reject(new Error("no")));
    await expect(steps.begun()).rejects.toThrow("no");
  });

  test("are at most ten in a second", async () => {
    let now = 0;
    const work = Promise.withResolvers<QuantizedModel>();
    const reports: ((progress: QuantizeProgress) => void)[] = [];
    const steps = new QuantizeSteps(
      (report) => {
        reports.push(report);
        return work.promise;
      },
      () => now,
    );
    const seen: unknown[] = [];
    const reading = (async () => {
      for await (const step of steps) seen.push(step);
    })();
    for (let bytes = 1; bytes <= 100; bytes++) {
      reports[0]?.(progress(bytes));
      now += 10;
      await setImmediate();
    }
    work.resolve(RESULT);
    await reading;
    expect(seen.length).toBeGreaterThan(8);
    expect(seen.length).toBeLessThan(14);
  });
});
