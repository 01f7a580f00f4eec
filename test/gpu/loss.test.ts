import fs from "node:fs";
import { afterAll, describe, expect, test } from "vitest";
import type { Engine, StartEngine } from "../../src/engine/engine.ts";
import { GpuFinder } from "../../src/engine/gpu/gpu-finder.ts";
import { guardGpu } from "../../src/engine/gpu/gpu-guard.ts";
import { probeGpu } from "../../src/engine/gpu/probe-gpu.ts";
import { createEngineStarter } from "../../src/engine/start-engine.ts";
import { writeDawnDouble } from "../support/dawn-double.ts";
import {
  collect,
  engineSpec,
  generateText,
  NEVER,
  promptRequest,
  SHIPPED_MODEL,
  temporaryFolder,
} from "../support/engine-fixture.ts";
import { logprobsOf, shareOfRounding } from "../support/forced-text.ts";
import { spawnTestEngine } from "../support/program.ts";
import { GPU_TEST_TIMEOUT_MS, onGpu, onTestGpu, testGpu } from "../support/test-gpu.ts";

/** Submissions of work behind the load and its warm-up: the device is lost while a request runs. */
const LOSE_IN_A_REQUEST = 120;
const LOSE_IN_LOADING = 3;
const LOSE_IN_WARM_UP = 12;

/** Less than the model's embedding, which is its output as well. */
const SMALL_BINDING = 300_032;

const folder = temporaryFolder();
const closing: Engine[] = [];

afterAll(async () => {
  await Promise.all(closing.map((engine) => engine.close()));
  fs.rmSync(folder, { recursive: true });
});

const spec = engineSpec(SHIPPED_MODEL, {
  batchSize: 16,
  ...onGpu,
});

function starter(dawnPath: string): StartEngine {
  const start = createEngineStarter({
    loadTimeoutMs: GPU_TEST_TIMEOUT_MS,
    stallTimeoutMs: GPU_TEST_TIMEOUT_MS,
    dawnPath,
    spawn: spawnTestEngine,
  });
  return async (...args) => {
    const engine = await start(...args);
    closing.push(engine);
    return engine;
  };
}

interface Fallen {
  readonly engine: Engine;
  readonly said: readonly string[];
}

/** Loaded on the CPU, because the device was lost while it loaded. */
let fallen: Promise<Fallen> | undefined;
async function startLosing(loseAfter = LOSE_IN_LOADING): Promise<Fallen> {
  const said: string[] = [];
  const finder = new GpuFinder({ mode: "auto", powerPreference: "high-performance", sandbox: false }, () =>
    Promise.resolve({ adapters: [] }),
  );
  const start = guardGpu({
    start: starter(writeDawnDouble(fs.mkdtempSync(`${folder}/`), { loseAfter })),
    finder,
    onReduction: (model, { gpuLayers }) => said.push(`${model}: ${gpuLayers} layers`),
    onShorterStep: () => {},
    isStepFixed: true,
    onLoss: () => {},
    onFallback: (model) => said.push(model),
  });
  return { engine: await start(spec, { alias: "tale" }), said };
}

const endless = promptRequest("Once upon a time", {
  maxTokens: 400,
  sampling: { temperature: 0, seed: 1, ignoreEos: true },
});

describe.skipIf(!testGpu)(`a GPU that fails, ${onTestGpu}`, { timeout: GPU_TEST_TIMEOUT_MS }, () => {
  test("a device lost in mid-generation ends the request with an error, and in the end the CPU serves", async () => {
    const said: string[] = [];
    const finder = new GpuFinder({ mode: "auto", powerPreference: "high-performance", sandbox: false }, () =>
      Promise.resolve({ adapters: testGpu ? [{ ...testGpu, software: false }] : [] }),
    );
    await finder.ready;
    const start = guardGpu({
      start: starter(writeDawnDouble(fs.mkdtempSync(`${folder}/`), { loseAfter: LOSE_IN_A_REQUEST })),
      finder,
      onReduction: (model, { gpuLayers }) => said.push(`${model}: ${gpuLayers} layers`),
      onShorterStep: () => {},
      isStepFixed: true,
      onLoss: (model, reason) => said.push(`lost ${model}: ${reason}`),
      onFallback: (model, reason) => said.push(`left ${model}: ${reason}`),
    });
    for (let round = 0; round < 2; round++) {
      const engine = await start(spec, { alias: "tale" });
      expect(engine.info.gpuLayers).toBeGreaterThan(0);
      await expect(collect(engine.generate(endless, NEVER))).rejects.toMatchObject({
        code: "engine_crashed",
        type: "model_error",
      });
      expect(await engine.exited).toMatchObject({ expected: false });
    }
    const engine = await start(spec, { alias: "tale" });
    expect(engine.info.gpuLayers).toBe(0);
    await generateText(engine, promptRequest("Once"));
    expect(said).toEqual([
      expect.stringMatching(/^lost tale: .*ggml_webgpu/),
      expect.stringMatching(/^lost tale: .*ggml_webgpu/),
      expect.stringMatching(/^left tale: the GPU failed 2 times/),
    ]);
  });

  test("a device lost while the model loads makes it load on the CPU", async () => {
    const { engine, said } = await (fallen ??= startLosing());
    expect(engine.info.gpuLayers).toBe(0);
    expect(said).toEqual(["tale"]);
  });

  test("so does one lost while its programs are compiled", async () => {
    const { engine, said } = await startLosing(LOSE_IN_WARM_UP);
    expect(engine.info.gpuLayers).toBe(0);
    expect(said).toEqual(["tale"]);
  });

  test("tensors that no program can see as a whole are computed with on the CPU, with the same probabilities", async () => {
    const dawnPath = writeDawnDouble(fs.mkdtempSync(`${folder}/`), {
      limits: { maxStorageBufferBindingSize: SMALL_BINDING },
    });
    // With one slot the cache is small enough.
    const engine = await starter(dawnPath)({ ...spec, slots: 1 });
    expect(engine.info.gpuLayers).toBeGreaterThan(0);
    const { engine: reference } = await (fallen ??= startLosing());
    const [found, expected] = await Promise.all(
      [engine, reference].map((each) => logprobsOf(each, "Once upon a time", "there was a cat.")),
    );
    expect(shareOfRounding(found!, expected!)).toBeLessThan(1);
  });

  test("an adapter without 16-bit floats is not used, and the probe says why", async () => {
    const dawnPath = writeDawnDouble(fs.mkdtempSync(`${folder}/`), { without: ["shader-f16"] });
    const { adapters } = await probeGpu({ dawnPath });
    expect(adapters).toContainEqual(
      expect.objectContaining({ name: testGpu?.name, problem: expect.stringContaining("shader-f16") }),
    );
    const engine = await starter(dawnPath)(spec);
    expect(engine.info.gpuLayers).toBe(0);
  });
});
