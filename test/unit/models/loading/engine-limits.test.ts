import { describe, expect, it } from "vitest";
import { engineBatchSize, engineThreads } from "../../../../src/models/loading/engine-limits.ts";

function generate(parameters: number): { purpose: "generate"; parameters: number } {
  return { purpose: "generate", parameters };
}

describe("threads of an engine", () => {
  it.each([
    [0, 1, 1],
    [0, 2, 1],
    [0, 8, 4],
    [0, 256, 32],
    [6, 2, 6],
  ])("configured as %i on %i processors are %i", (configured, cores, expected) => {
    expect(engineThreads(configured, cores)).toBe(expected);
  });
});

describe("tokens of one step of the prompt", () => {
  it.each([
    ["a tiny model", 4e6, 512],
    ["a model of 500 million weights: half a second", 5e8, 32],
    ["a large model", 7e9, 16],
  ])("are few enough for %s", (_what, parameters, expected) => {
    expect(engineBatchSize(generate(parameters), 4096, { batch_size: 0 })).toBe(expected);
  });

  it("are as configured, but for an encoder, which needs its whole text at once", () => {
    expect(engineBatchSize(generate(7e9), 4096, { batch_size: 100 })).toBe(100);
    expect(engineBatchSize({ purpose: "embed", parameters: 1e8 }, 2048, { batch_size: 100 })).toBe(2048);
    expect(engineBatchSize({ purpose: "rerank", parameters: 1e8 }, 100_000, { batch_size: 0 })).toBe(8192);
  });
});
