import fs from "node:fs";
import { afterAll, describe, expect, test } from "vitest";
import type { Engine, StartEngine } from "../../src/engine/engine.ts";
import { GpuFinder } from "../../src/engine/gpu/gpu-finder.ts";
import { guardGpu } from "../../src/engine/gpu/gpu-guard.ts";
import { probeGpu } from "../../src/engine/gpu/probe-gpu.ts";
import { type DawnDouble, writeDawnDouble } from "../support/dawn-double.ts";
import {
  collect,
  engineSpec,
  generateText,
  NEVER,
  promptRequest,
  temporaryFolder,
  writeModel,
} from "../support/engine-fixture.ts";
import { spawnTestEngine } from "../support/program.ts";
import { GPU_TEST_TIMEOUT_MS, gpuEngineStarter, onGpu, onTestGpu, testGpu } from "../support/test-gpu.ts";
import { tinyLlama } from "../support/tiny-models.ts";
import { generated } from "../support/generated.ts";

/** Submissions before the device fails: behind the load and warm-up, so that a request runs. */
const IN_A_REQUEST = 100;
const IN_LOADING = 3;
const IN_WARM_UP = 12;

/** Stall timeout, longer than a step. */
const STALL_TIMEOUT_MS = 5000;

const folder = temporaryFolder();
const closing: Engine[] = [];

afterAll(async () => {
  await Promise.all(closing.map((engine) => engine.close()));
  fs.rmSync(folder, { recursive: true });
});

const spec = engineSpec(writeModel(folder, "tale", tinyLlama()), { batchSize: 16, ...onGpu });

/** @param stallTimeoutMs of requests; while a model loads, the GPU has as long as it takes */
function starter(dawnPath: string, stallTimeoutMs = GPU_TEST_TIMEOUT_MS): StartEngine {
  const start = gpuEngineStarter({
    stallTimeoutMs,
    dawnPath,
    spawn: (command, args, options) => {
      const patient = args.includes(dawnPath) ? [...args.slice(0, -1), String(GPU_TEST_TIMEOUT_MS)] : args;
      return spawnTestEngine(command, patient, options);
    },
  });
  return async (...args) => {
    const engine = await start(...args);
    closing.push(engine);
    return engine;
  };
}

/** Fallback engine on the CPU for all tests. */
let onCpu: Promise<Engine> | undefined;

/** Starts a model on GPUs that fail one after the other; returns the outcome. */
function guarded(...doubles: readonly DawnDouble[]): { start: () => Promise<Engine>; said: string[] } {
  const starters = doubles.map((double) =>
    starter(
      writeDawnDouble(fs.mkdtempSync(`${folder}/`), double),
      double.hangAfter === undefined ? undefined : STALL_TIMEOUT_MS,
    ),
  );
  const said: string[] = [];
  const start = guardGpu({
    start: async (wanted, options) => {
      if (!wanted.gpu) return await (onCpu ??= starter("")(wanted, options));
      const next = starters.shift();
      if (!next) throw new Error("the GPU was to be left alone");
      return await next(wanted, options);
    },
    finder: new GpuFinder({ mode: "auto", sandbox: "auto" }, () => Promise.resolve({ adapters: [] })),
    onReduction: (model, { gpuLayers }) => said.push(`${model}: ${gpuLayers} layers`),
    onShorterStep: () => {},
    isStepFixed: true,
    onLoss: (model, reason) => said.push(`lost ${model}: ${reason}`),
    onFallback: (model, reason) => said.push(`left ${model}: ${reason}`),
  });
  return { start: async () => await start(spec, { alias: "tale" }), said };
}

const endless = promptRequest("Once upon a time", {
  maxTokens: 400,
  sampling: { temperature: 0, seed: 1, ignoreEos: true },
});

describe.skipIf(!testGpu)(`a GPU that fails, ${onTestGpu}`, { timeout: GPU_TEST_TIMEOUT_MS }, () => {
  test("lost or stalled during a generation fails the request, and the CPU serves in the end", async () => {
    const { start, said } = guarded({ loseAfter: IN_A_REQUEST }, { hangAfter: IN_A_REQUEST });
    for (const code of ["engine_crashed", "deadline_exceeded"]) {
      const engine = await start();
      expect(engine.info.gpuLayers).toBeGreaterThan(0);
      await expect(collect(generated(engine, endless, NEVER))).rejects.toMatchObject({
        code,
        type: "model_error",
      });
      expect(await engine.exited).toMatchObject({ expected: false });
    }
    const engine = await start();
    expect(engine.info.gpuLayers).toBe(0);
    await generateText(engine, promptRequest("Once"));
    expect(said).toEqual([
      expect.stringMatching(/^lost tale: .*ggml_webgpu/),
      expect.stringMatching(/^lost tale: .*answer/),
      expect.stringMatching(/^left tale: the GPU failed 2 times/),
    ]);
  });

  test.each([
    ["the model loads", IN_LOADING],
    ["its programs are compiled", IN_WARM_UP],
  ])("lost while %s makes it load on the CPU", async (_when, loseAfter) => {
    const { start, said } = guarded({ loseAfter });
    expect((await start()).info.gpuLayers).toBe(0);
    expect(said).toEqual([expect.stringMatching(/^left tale: /)]);
  });

  test("without 16-bit floats is not used, with the reason", async () => {
    const dawnPath = writeDawnDouble(fs.mkdtempSync(`${folder}/`), { without: ["shader-f16"] });
    const { adapters } = await probeGpu({ dawnPath });
    expect(adapters).toContainEqual(
      expect.objectContaining({ name: testGpu?.name, problem: expect.stringContaining("shader-f16") }),
    );
    const engine = await starter(dawnPath)(spec);
    expect(engine.info.gpuLayers).toBe(0);
  });
});
