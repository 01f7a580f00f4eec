import { describe, expect, test } from "vitest";
import { GpuFinder } from "../../../../src/engine/gpu/gpu-finder.ts";
import { bytesOnGpu, gpuNeeds, partOnCpu } from "../../../../src/engine/gpu/gpu-memory.ts";
import type { GpuAdapter } from "../../../../src/engine/gpu/gpu-report.ts";
import {
  chooseAdapter,
  type GpuMode,
  type GpuPlacement,
  type GpuPreferences,
  offloadToGpu,
} from "../../../../src/engine/gpu/offload-to-gpu.ts";
import type { EngineSpec } from "../../../../src/engine/protocol/engine-spec.ts";
import type { SandboxMode } from "../../../../src/engine/sandbox/sandbox-finder.ts";
import { engineSpec } from "../../../support/engine-fixture.ts";
import { broken, card, chip, software } from "./adapters.ts";

const MIB = 1024 ** 2;

const model = {
  parameters: 4_000_000,
  blockCount: 3,
  vocabSize: 2000,
  embeddingLength: 64,
  fileSize: 40 * MIB,
  kvBytesPerToken: 3000,
  weightBytes: { blocks: 30 * MIB, largestInBlocks: 2 * MIB, embedding: 4 * MIB, output: 5 * MIB },
};
const spec = engineSpec("/m.gguf", { contextSize: 1000 });
const { work, output, block } = gpuNeeds(model, spec, 512);
const gpu = { backend: card.backend, name: card.name, layers: 4, batchSize: 512 };

function finder(mode: GpuMode, adapters: GpuAdapter[] = [card], sandbox: SandboxMode = "auto"): GpuFinder {
  const adapter = adapters[0]?.software ? adapters[0].name : undefined;
  return new GpuFinder({ mode, adapter, sandbox }, async () => ({
    adapters,
    problem: "No loader.",
  }));
}

async function offload(
  from: GpuFinder,
  preferences: Partial<GpuPreferences> = {},
  { model: other = model, spec: wanted = spec }: { model?: typeof model; spec?: EngineSpec } = {},
): Promise<GpuPlacement> {
  return await offloadToGpu(from, wanted, other, {
    memory: 0,
    usedByOthers: 0,
    batchSize: 0,
    extraBytes: 0,
    ...preferences,
  });
}

describe("the layers of a model on the GPU", () => {
  test.each<[GpuMode, number | undefined, number]>([
    ["auto", undefined, -1],
    ["auto", -1, -1],
    ["auto", 4, -1],
    ["auto", 100, -1],
    ["auto", 2, 2],
    ["require", undefined, -1],
    ["off", undefined, 0],
    ["auto", 0, 0],
    ["require", 0, 0],
  ])("with mode %s and %s requested layers: %i", async (mode, layers, gpuLayers) => {
    const placed = await offload(finder(mode), { layers });
    expect(placed.spec).toEqual(gpuLayers === 0 ? { ...spec, gpuLayers } : { ...spec, gpuLayers, gpu });
    expect(placed.warning).toBeUndefined();
  });

  test("without a GPU: none, with a warning if layers were requested", async () => {
    expect(await offload(finder("auto", []))).toEqual({ spec });
    const inVain = (why: string): GpuPlacement => ({ spec, warning: expect.stringContaining(why) });
    expect(await offload(finder("auto", []), { layers: 3 })).toEqual(inVain("No loader."));
    expect(await offload(finder("off"), { layers: 3 })).toEqual(inVain("gpu.mode"));
    expect(await offload(finder("auto", [card], "require"), { layers: -1 })).toEqual(
      inVain("A required sandbox"),
    );
  });

  test("are an error when a GPU is required and there is none", async () => {
    await expect(offload(finder("require", []))).rejects.toMatchObject({
      code: "gpu_unavailable",
      message: expect.stringContaining("No loader."),
    });
  });
});

describe("the memory budget of the GPU", () => {
  /** Enough for the output layer and one of the blocks. */
  const budget = work + output + 2 * block - 1;

  test("limits the number of layers, with a warning", async () => {
    const { spec: placed, warning } = await offload(finder("auto"), { memory: budget });
    expect(placed).toMatchObject({ gpuLayers: 2, gpu });
    expect(warning).toMatch(/^Only 2 of its 4 layers fit into the \d+ MiB of Big Card .*\(gpu\.memory\)/);
    expect(await offload(finder("auto"), { memory: budget, layers: 2 })).toMatchObject({
      spec: { gpuLayers: 2 },
      warning: undefined,
    });
    expect((await offload(finder("auto"), { memory: work })).spec).toEqual(spec);
    await expect(offload(finder("require"), { memory: budget })).rejects.toMatchObject({
      code: "insufficient_memory",
    });
  });

  test("is the memory reported by the operating system, less a tenth, if not configured", async () => {
    const known = { ...card, memory: Math.floor(budget / 0.9) };
    const { spec: placed, warning } = await offload(finder("auto", [known]));
    expect(placed.gpuLayers).toBe(2);
    expect(warning).not.toContain("gpu.memory");
    expect((await offload(finder("auto", [known]), { memory: 2 * budget })).spec.gpuLayers).toBe(-1);
  });

  test("includes other models, and the warning says so", async () => {
    const taken = 100 * MIB;
    const { spec: placed, warning } = await offload(finder("auto"), {
      memory: budget + taken,
      usedByOthers: taken,
    });
    expect(placed).toMatchObject({ gpuLayers: 2, gpu });
    expect(warning).toMatch(/^Only 2 of its 4 layers fit into .* since other models use 100 MiB; unload one/);
    const known = { ...card, memory: Math.floor((budget + taken) / 0.9) };
    expect((await offload(finder("auto", [known]), { usedByOthers: taken })).spec.gpuLayers).toBe(2);
    expect((await offload(finder("auto"), { memory: taken, usedByOthers: taken })).spec).toEqual(spec);
    await expect(offload(finder("require", [known]), { usedByOthers: taken })).rejects.toMatchObject({
      code: "insufficient_memory",
      message: expect.stringContaining("since other models use 100 MiB"),
    });
    // With unknown memory, other models do not count.
    expect((await offload(finder("auto"), { usedByOthers: taken })).spec.gpuLayers).toBe(-1);
  });

  test("is enough for the memory that is later counted as used", async () => {
    for (const memory of [budget, budget + block, 100 * budget]) {
      const { spec: placed } = await offload(finder("auto"), { memory, extraBytes: MIB });
      expect(bytesOnGpu(model, placed, MIB)).toBeLessThanOrEqual(memory);
    }
    expect(bytesOnGpu(model, { ...spec, gpuLayers: -1, gpu }, MIB)).toBe(work + MIB + output + 3 * block);
    expect(bytesOnGpu(model, { ...spec, gpuLayers: 0, gpu }, MIB)).toBe(0);
    expect(bytesOnGpu(model, spec, MIB)).toBe(0);
  });

  test("includes the projector, the adapters and a longer context", async () => {
    expect((await offload(finder("auto"), { memory: budget, extraBytes: block })).spec.gpuLayers).toBe(1);
    const longer = { ...spec, contextSize: 100_000 };
    expect((await offload(finder("auto"), { memory: budget }, { spec: longer })).spec.gpuLayers).toBe(1);
  });
});

describe("tensors that are too large to bind", () => {
  const narrow = { ...card, limits: { ...card.limits, maxStorageBufferBindingSize: 3 * MIB } };

  test("in each layer keep the model on the CPU", async () => {
    const wide = { ...model, weightBytes: { ...model.weightBytes, largestInBlocks: 4 * MIB } };
    expect(await offload(finder("auto", [narrow]), {}, { model: wide })).toEqual({
      spec,
      warning: expect.stringContaining("can access at most 3 MiB at once"),
    });
    await expect(offload(finder("require", [narrow]), {}, { model: wide })).rejects.toMatchObject({
      code: "gpu_unavailable",
    });
  });

  test("in the KV cache of each layer keep the model on the CPU", async () => {
    const small = { ...model, weightBytes: { ...model.weightBytes, output: MIB, embedding: MIB } };
    // Keys take 500 bytes per token of a layer.
    const within = { ...spec, slots: 1, contextSize: 6200 };
    const beyond = { ...spec, slots: 1, contextSize: 6400 };
    expect(await offload(finder("auto", [narrow]), {}, { model: small, spec: within })).toMatchObject({
      spec: { gpuLayers: -1 },
      warning: undefined,
    });
    expect(await offload(finder("auto", [narrow]), {}, { model: small, spec: beyond })).toEqual({
      spec: beyond,
      warning: expect.stringContaining("use a smaller context"),
    });
  });

  test("in the output layer cause a warning, also if it shares the embedding's tensor", async () => {
    for (const own of [5 * MIB, 0]) {
      const other = { ...model, weightBytes: { ...model.weightBytes, output: own } };
      expect(await offload(finder("require", [narrow]), {}, { model: other })).toMatchObject({
        spec: { gpuLayers: -1 },
        warning: expect.stringContaining("stays on the CPU"),
      });
    }
  });
});

async function step(...args: Parameters<typeof offload>): Promise<number | undefined> {
  return (await offload(...args)).spec.gpu?.batchSize;
}

/** The model with this number of weights. */
function withWeights(parameters: number): { model: typeof model } {
  return { model: { ...model, parameters } };
}

describe("the batch size on a GPU", () => {
  test("is the default of the device, unless configured", async () => {
    expect(await step(finder("auto"))).toBe(512);
    expect(await step(finder("auto", [software]))).toBe(16);
    expect(await step(finder("auto", [software]), { batchSize: 7 })).toBe(7);
    expect(await step(finder("auto"), {}, { spec: { ...spec, contextSize: 64 } })).toBe(64);
  });

  test("is smaller for larger models on a software adapter, which does not run very large ones", async () => {
    expect(await step(finder("auto", [software]), {}, withWeights(800_000_000))).toBe(10);
    expect(await offload(finder("auto", [software]), {}, withWeights(8_000_000_000))).toEqual({
      spec,
      warning: expect.stringContaining("too large for llvmpipe"),
    });
    expect(await step(finder("auto"), {}, withWeights(8_000_000_000))).toBe(512);
  });

  test("is the full context for an embedding model", async () => {
    const embedding = { ...spec, purpose: "embed" as const, batchSize: 1000 };
    expect(await step(finder("auto"), { batchSize: 7 }, { spec: embedding })).toBe(1000);
    expect(await step(finder("auto", [software]), {}, { spec: embedding })).toBe(1000);
  });
});

test("layers on the GPU do not count as main memory", () => {
  expect(partOnCpu(model, { gpuLayers: -1, gpu })).toEqual({ fileBytes: 5 * MIB, kvShare: 0 });
  expect(partOnCpu(model, { gpuLayers: 1, gpu })).toEqual({ fileBytes: 35 * MIB, kvShare: 1 });
  expect(partOnCpu(model, { gpuLayers: 2, gpu })).toEqual({ fileBytes: 25 * MIB, kvShare: 1 - 1 / 3 });
  expect(partOnCpu(model, { gpuLayers: 0, gpu })).toEqual({ fileBytes: 40 * MIB, kvShare: 1 });
  expect(partOnCpu(model, { gpuLayers: -1 })).toEqual({ fileBytes: 40 * MIB, kvShare: 1 });
});

test("chooses the adapter that the system prefers for speed", () => {
  const report = { adapters: [chip, card, software], fastest: card };
  expect(chooseAdapter(report)).toEqual({ adapter: card });
});

test("chooses the first usable adapter when the system prefers an unusable one", () => {
  const report = { adapters: [broken, software, chip, card], fastest: broken };
  expect(chooseAdapter(report)).toEqual({ adapter: chip });
});

test("chooses the named adapter, of any kind, ignoring case", () => {
  const report = { adapters: [card, chip, software], fastest: card };
  expect(chooseAdapter(report, "radeon")).toEqual({ adapter: chip });
  expect(chooseAdapter(report, "LLVMPIPE")).toEqual({ adapter: software });
  expect(chooseAdapter(report, "")).toEqual({ adapter: card });
});

test("does not choose a software adapter that is not named, and explains how to use it", () => {
  const choice = chooseAdapter({ adapters: [software], fastest: software });
  expect(choice).toEqual({
    problem:
      "The only adapter, llvmpipe, computes on the CPU itself, and more slowly. If there is a GPU, install its driver; to use llvmpipe anyway, name it in gpu.adapter.",
  });
});

test("explains why a GPU beside a software adapter cannot be used", () => {
  const choice = chooseAdapter({ adapters: [broken, software] });
  expect(choice).toEqual({
    problem: expect.stringMatching(
      /^Old Card \(vulkan\): It does not open\. The only other adapter, llvmpipe.*gpu\.adapter/,
    ),
  });
});

test.each([
  [{ adapters: [], problem: "No loader." }, undefined, "No loader."],
  [{ adapters: [broken] }, undefined, `Old Card (vulkan): ${broken.problem}`],
  [{ adapters: [card] }, "matrox", 'No adapter matches "matrox"; available: Big Card (vulkan).'],
  [{ adapters: [broken, card] }, "old", `Old Card (vulkan): ${broken.problem}`],
])("explains why there is no adapter: %#", (report, name, problem) => {
  expect(chooseAdapter(report, name)).toEqual({ problem });
});
