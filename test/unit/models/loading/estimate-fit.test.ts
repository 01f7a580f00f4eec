import { describe, expect, test } from "vitest";
import { estimateMemory, checkHeapLimit } from "../../../../src/engine/estimate-memory.ts";
import { assumedModel } from "../../../../src/models/loading/estimate-fit.ts";
import type { EstimateMemory, OffloadLayers } from "../../../../src/models/models-options.ts";
import { startModels } from "../service-fixture.ts";

const GIB = 1024 ** 3;
const UNKNOWN = { parameters: undefined, trainedContext: undefined, quantization: undefined };

/** Estimates like the daemon, with a limit of 16 GiB per engine. */
const estimate: EstimateMemory = (gguf, spec) => {
  const all = estimateMemory({ ...gguf, fileBytes: gguf.fileSize, spec });
  checkHeapLimit(all, 16 * GIB);
  return all.totalBytes;
};

const fiveOnGpu: OffloadLayers = async (gguf, spec) => ({
  spec: {
    ...spec,
    gpuLayers: 5,
    gpu: { backend: "vulkan", name: "A GPU", layers: gguf.blockCount + 1, batchSize: 64 },
  },
});

async function fit(
  fileBytes: number,
  budget: number,
  { offloadLayers, ...more }: { offloadLayers?: OffloadLayers; trainedContext?: number } = {},
) {
  const { models } = await startModels({
    config: { memory_budget: budget },
    estimateMemory: estimate,
    ...(offloadLayers && { offloadLayers }),
  });
  return await models.fit({ ...UNKNOWN, fileBytes, ...more });
}

const billionsOf = (quantization: string | undefined) =>
  assumedModel({ ...UNKNOWN, fileBytes: 4.8e9, quantization }).parameters / 1e9;

describe("assumedModel()", () => {
  // Values of these models' headers: blocks, width, bytes of KV cache per token.
  test.each([
    ["Llama 3.1 8B", 8.03e9, 4.9e9, 32, 4096, 131_072],
    ["Llama 3.2 1B", 1.24e9, 0.8e9, 16, 2048, 32_768],
    ["Llama 3.3 70B", 70.6e9, 42.5e9, 80, 8192, 327_680],
    ["Qwen 3 0.6B", 0.6e9, 0.6e9, 28, 1024, 114_688],
  ])("is within a factor of three of %s", (_name, parameters, fileBytes, blocks, width, kv) => {
    const model = assumedModel({ ...UNKNOWN, fileBytes, parameters });
    for (const [guess, truth] of [
      [model.blockCount, blocks],
      [model.embeddingLength, width],
    ] as const) {
      expect(guess / truth).toBeGreaterThan(1 / 3);
      expect(guess / truth).toBeLessThan(3);
    }
    // Small models have a larger KV cache than their size suggests, but it is small in any case.
    expect(model.kvBytesPerToken / kv).toBeGreaterThan(1 / 8);
    expect(model.kvBytesPerToken / kv).toBeLessThan(3);
  });

  test("derives the number of weights from bytes and quantization", () => {
    expect(billionsOf("Q4_K_M")).toBeCloseTo(8, 1);
    expect(billionsOf("F16")).toBeCloseTo(2.4, 1);
    expect(billionsOf(undefined)).toBeCloseTo(7.7, 1);
  });
});

describe("estimateFit()", () => {
  test("accepts a small model, and needs more memory than its files", async () => {
    const found = await fit(1 * GIB, 4 * GIB);
    expect(found).toMatchObject({ fits: true, contextSize: 4096 });
    expect(found.neededBytes).toBeGreaterThan(1 * GIB);
    expect(found.neededBytes).toBeLessThan(3 * GIB);
    expect(found).not.toHaveProperty("gpu");
  });

  test("rejects a model that needs more than all models may use", async () => {
    const { fits, reason } = await fit(4 * GIB, 4 * GIB);
    expect(fits).toBe(false);
    expect(reason).toMatch(
      /^The model needs about \d+ MiB: all models together may use 4096 MiB .*smaller quantization may fit\.$/,
    );
  });

  test("rejects a model that needs more than an engine can have, however much memory there is", async () => {
    const found = await fit(40 * GIB, 512 * GIB);
    expect(found).toMatchObject({ fits: false, neededBytes: 40 * GIB });
    expect(found.reason).toContain("an engine can have at most 16384 MiB");
  });

  test("limits the context to what the model was trained for", async () => {
    expect(await fit(1 * GIB, 4 * GIB, { trainedContext: 512 })).toMatchObject({ contextSize: 512 });
  });

  test("reports the number of layers on the GPU", async () => {
    const { gpu } = await fit(1 * GIB, 4 * GIB, { offloadLayers: fiveOnGpu });
    expect(gpu).toMatchObject({ layers: 5, allLayers: expect.any(Number), bytes: expect.any(Number) });
    expect(gpu?.allLayers).toBeGreaterThan(5);
  });
});
