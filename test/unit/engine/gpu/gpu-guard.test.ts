import { expect, test } from "vitest";
import type { EngineLoadOptions } from "../../../../src/engine/engine.ts";
import { GpuFinder } from "../../../../src/engine/gpu/gpu-finder.ts";
import type { GpuMode } from "../../../../src/engine/gpu/offload-to-gpu.ts";
import { guardGpu } from "../../../../src/engine/gpu/gpu-guard.ts";
import type { EngineSpec } from "../../../../src/engine/protocol/engine-spec.ts";
import { type ErrorCode } from "../../../../src/errors/error-codes.ts";
import { ServiceError } from "../../../../src/errors/service-error.ts";
import { engineSpec } from "../../../support/engine-fixture.ts";
import { FakeEngine } from "../../../support/fake-engine.ts";
import { card } from "./adapters.ts";

const spec = engineSpec("/m.gguf", {
  sharedContext: true,
  gpuLayers: -1,
  gpu: { backend: card.backend, name: card.name, layers: 9, batchSize: 512 },
  batchSize: 5,
});
const { gpu: _gpu, ...onCpu } = { ...spec, gpuLayers: 0 };

async function setUp({ mode = "auto", isStepFixed = false }: { mode?: GpuMode; isStepFixed?: boolean } = {}) {
  const said: string[] = [];
  const started: EngineSpec[] = [];
  const engines: FakeEngine[] = [];
  const time = { now: 0 };
  /** Milliseconds of the GPU per token of a prompt. */
  const pace: { tokenMs?: number } = {};
  /** Error of a load onto the GPU, and the number of layers with which it succeeds. */
  const failing: { code?: ErrorCode; message?: string; fitting?: number; unlessShared?: boolean } = {};
  const settings = { mode, sandbox: "auto" } as const;
  const finder = new GpuFinder(settings, async () => ({ adapters: [card] }));
  const guarded = guardGpu({
    start: async (wanted) => {
      started.push(wanted);
      const fits = failing.unlessShared
        ? wanted.sharedContext
        : wanted.gpuLayers >= 0 && wanted.gpuLayers <= (failing.fitting ?? -1);
      if (failing.code && wanted.gpu && !fits) {
        throw new ServiceError(failing.code, failing.message ?? "it broke");
      }
      const { tokenMs } = pace;
      const engine = new FakeEngine(
        wanted,
        tokenMs === undefined ? {} : { stepMs: tokenMs * wanted.batchSize },
      );
      engines.push(engine);
      return engine;
    },
    finder,
    onReduction: (model, { gpuLayers, sharedContext }) =>
      said.push(`${model}: ${gpuLayers} layers, ${sharedContext ? "a shared context" : "own contexts"}`),
    onLoss: (model, reason) => said.push(`lost ${model}: ${reason}`),
    onShorterStep: (model, tokens, stepMs) => said.push(`${model}: ${tokens} tokens, not ${stepMs} ms`),
    isStepFixed,
    onFallback: (model, reason) => said.push(`left ${model}: ${reason}`),
    now: () => time.now,
  });
  const start = async (load: EngineLoadOptions = { alias: "m" }, wanted = spec) =>
    await guarded(wanted, load);
  const crash = async (): Promise<void> => {
    await start();
    await engines.at(-1)?.crash("boom");
  };
  return { start, guarded, crash, said, started, engines, time, failing, pace };
}

test("the GPU guard ignores an engine on the CPU", async () => {
  const { guarded, started } = await setUp();
  await guarded(onCpu);
  expect(started).toEqual([onCpu]);
});

test("the batch size is that of the GPU, and on the CPU that of the CPU", async () => {
  const { start, started, failing } = await setUp();
  await start();
  expect(started.at(-1)?.batchSize).toBe(512);
  failing.code = "engine_crashed";
  await start();
  expect(started.at(-1)?.batchSize).toBe(5);
});

test("a model whose steps take too long is reloaded with shorter ones, and the next load uses them at once", async () => {
  const { start, said, started, engines, pace } = await setUp();
  pace.tokenMs = 10;
  expect((await start()).spec.batchSize).toBe(100);
  expect(started.map(({ batchSize }) => batchSize)).toEqual([512, 100]);
  expect(engines.map(({ alive }) => alive)).toEqual([false, true]);
  expect(said).toEqual(["m: 100 tokens, not 5120 ms"]);
  started.length = 0;
  await start();
  expect(started.map(({ batchSize }) => batchSize)).toEqual([100]);
  // Closing the engine does not count as a loss.
  expect(said).toHaveLength(1);
});

test("a step has at least one token per slot and one prompt token, even if it takes too long", async () => {
  const { start, started, pace } = await setUp();
  pace.tokenMs = 100_000;
  expect((await start()).spec.batchSize).toBe(spec.slots + 1);
  expect(started).toHaveLength(2);
});

test.each([
  ["short enough", 3.9, false],
  ["set by the user", 1000, true],
])("steps that are %s are not shortened", async (_what, tokenMs, isStepFixed) => {
  const { start, started, pace } = await setUp({ isStepFixed });
  pace.tokenMs = tokenMs;
  await start();
  expect(started.map(({ batchSize }) => batchSize)).toEqual([512]);
});

test("when the GPU's memory is full, fewer layers are tried, and finally the CPU", async () => {
  const { start, said, started, failing } = await setUp();
  Object.assign(failing, { code: "model_load_failed", message: "ggml_webgpu: Out of memory", fitting: 2 });
  expect((await start()).spec.gpuLayers).toBe(2);
  expect(started.map(({ gpuLayers }) => gpuLayers)).toEqual([-1, 4, 2]);
  expect(said).toEqual(["m: 4 layers, a shared context", "m: 2 layers, a shared context"]);
  failing.fitting = 0;
  expect((await start()).spec).toEqual(onCpu);
  expect(said.at(-1)).toBe("left m: ggml_webgpu: Out of memory");
});

test.each([
  "vkAllocateMemory failed with VK_ERROR_OUT_OF_DEVICE_MEMORY",
  "ggml_webgpu: Device error! Reason: 3, Message: D3D12 create resource failed with E_OUTOFMEMORY",
  "alloc_tensor_range: failed to allocate WebGPU buffer of size 1000",
  "unable to allocate WebGPU buffer",
  "Buffer allocation failed",
])("a message about full memory is recognized: %s", async (message) => {
  const { start, said, failing } = await setUp();
  Object.assign(failing, { code: "engine_crashed", message, fitting: 4 });
  await start();
  expect(said).toEqual(["m: 4 layers, a shared context"]);
});

test("slots share a context before layers are removed from the GPU", async () => {
  const { start, said, started, failing } = await setUp();
  Object.assign(failing, { code: "engine_crashed", message: "Out of memory", unlessShared: true });
  const own = { ...spec, sharedContext: false };
  expect((await start({ alias: "m" }, own)).spec).toMatchObject({ gpuLayers: -1, sharedContext: true });
  expect(said).toEqual(["m: -1 layers, a shared context"]);
  Object.assign(failing, { unlessShared: false, fitting: 4 });
  started.length = 0;
  await start({ alias: "m" }, own);
  expect(started.map(({ gpuLayers, sharedContext }) => [gpuLayers, sharedContext])).toEqual([
    [-1, false],
    [-1, true],
    [4, true],
  ]);
});

test("with a required GPU no layers are removed, but slots share a context when memory is short", async () => {
  const { start, started, failing } = await setUp({ mode: "require" });
  Object.assign(failing, { code: "engine_crashed", message: "Out of memory", fitting: 4 });
  const own = { ...spec, sharedContext: false };
  await expect(start({ alias: "m" }, own)).rejects.toThrow("Out of memory");
  expect(started.map(({ gpuLayers, sharedContext }) => [gpuLayers, sharedContext])).toEqual([
    [-1, false],
    [-1, true],
  ]);
});

test("memory is reserved for other settings than requested before an engine is started with them", async () => {
  const { start, started, failing } = await setUp();
  Object.assign(failing, { code: "engine_crashed", message: "Out of memory", fitting: 0 });
  const booked: [number, number][] = [];
  const reserveMemory = async ({ gpuLayers }: EngineSpec): Promise<void> => {
    booked.push([started.length, gpuLayers]);
  };
  await start({ alias: "m", reserveMemory });
  expect(booked).toEqual([
    [1, 4],
    [2, 2],
    [3, 1],
    [4, 0],
  ]);
  booked.length = 0;
  failing.message = "it broke";
  await start({ alias: "m", reserveMemory });
  started.length = 0;
  booked.length = 0;
  await start({ alias: "m", reserveMemory });
  expect(booked).toEqual([[0, 0]]);
});

test("an engine for whose settings no memory can be reserved is not started", async () => {
  const { start, started, failing } = await setUp();
  failing.code = "engine_crashed";
  const full = new ServiceError("insufficient_memory", "full");
  await expect(start({ alias: "m", reserveMemory: async () => await Promise.reject(full) })).rejects.toBe(
    full,
  );
  expect(started).toHaveLength(1);
});

test("a model that repeatedly fails to load onto the GPU is loaded on the CPU", async () => {
  const { start, said, started, failing, time } = await setUp();
  failing.code = "model_load_failed";
  await start();
  await start();
  started.length = 0;
  await start();
  expect(started).toEqual([onCpu]);
  expect(said.at(-1)).toBe("left m: the GPU failed 2 times in 10 minutes");
  time.now += 600_001;
  await start();
  expect(started.at(-2)?.gpuLayers).toBe(-1);
});

test("a model lost on the GPU is reloaded there, and on the CPU after the second loss", async () => {
  const { crash, start, said, started, time } = await setUp();
  await crash();
  await crash();
  expect(started.map(({ gpuLayers }) => gpuLayers)).toEqual([-1, -1]);
  await start();
  expect(started.at(-1)).toEqual(onCpu);
  expect(said).toEqual(["lost m: boom", "lost m: boom", "left m: the GPU failed 2 times in 10 minutes"]);
  time.now += 600_001;
  await start();
  expect(started.at(-1)?.gpuLayers).toBe(-1);
});

test("closing an engine does not count as a lost GPU", async () => {
  const { start, said } = await setUp();
  for (let round = 0; round < 3; round++) await (await start()).close();
  expect(said).toEqual([]);
});

test.each<ErrorCode>([
  "model_load_failed",
  "insufficient_memory",
  "engine_crashed",
  "deadline_exceeded",
  "inference_failed",
])("a load that fails on the GPU with %s is tried on the CPU", async (code) => {
  const { start, said, started, failing } = await setUp();
  failing.code = code;
  expect((await start()).spec).toEqual(onCpu);
  expect(started).toHaveLength(2);
  expect(said).toEqual(["left m: it broke"]);
});

test.each<[string, ErrorCode, GpuMode, AbortSignal | undefined]>([
  ["the model file is invalid", "invalid_model_file", "auto", undefined],
  ["a GPU is required", "model_load_failed", "require", undefined],
  ["the caller has aborted", "model_load_failed", "auto", AbortSignal.abort()],
])("the load fails without a fallback when %s", async (_why, code, mode, signal) => {
  const { start, said, failing } = await setUp({ mode });
  failing.code = code;
  await expect(start({ alias: "m", ...(signal && { signal }) })).rejects.toMatchObject({ code });
  expect(said).toEqual([]);
});

test("a required GPU is used after any number of losses", async () => {
  const { crash, started } = await setUp({ mode: "require" });
  for (let round = 0; round < 4; round++) await crash();
  expect(started.every(({ gpuLayers }) => gpuLayers === -1)).toBe(true);
});
