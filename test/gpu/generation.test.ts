import fs from "node:fs";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { Engine, StartEngine } from "../../src/engine/engine.ts";
import { GpuFinder } from "../../src/engine/gpu/gpu-finder.ts";
import { gpuNeeds } from "../../src/engine/gpu/gpu-memory.ts";
import { offloadToGpu } from "../../src/engine/gpu/offload-to-gpu.ts";
import type { EngineSpec } from "../../src/engine/protocol/engine-spec.ts";
import type { TokenLogprob } from "../../src/engine/protocol/generation.ts";
import type { SlotResult } from "../../src/engine/protocol/calls.ts";
import { createGgufInspector } from "../../src/models/gguf/inspect-gguf.ts";
import { writeDawnDouble } from "../support/dawn-double.ts";
import {
  chatRequest,
  engineSpec,
  generateText,
  NEVER,
  promptRequest,
  SHIPPED_MODEL,
  temporaryFolder,
} from "../support/engine-fixture.ts";
import { logprobsOf, shareOfRounding } from "../support/forced-text.ts";
import {
  GPU_TEST_TIMEOUT_MS,
  gpuEngineStarter,
  onGpu,
  onTestGpu,
  startGpuEngine,
  testGpu,
} from "../support/test-gpu.ts";
import { generated } from "../support/generated.ts";

/** Prompt longer than a batch. */
const PROMPT = "Once upon a time there was a small model that told stories to";
const TEXT = "a cat, who slept.";

/** Smaller than the model's embedding, which is also its output. */
const SMALL_BINDING = 300_032;

const folder = temporaryFolder();
const engines: Engine[] = [];

/** Log-probabilities of the text on an engine, computed once. */
const asked = new Map<Engine, Promise<TokenLogprob[]>>();

async function thoughtsOf(engine: Engine): Promise<TokenLogprob[]> {
  const thoughts = asked.get(engine) ?? logprobsOf(engine, PROMPT, TEXT);
  asked.set(engine, thoughts);
  return await thoughts;
}

interface Starting {
  readonly onProgress?: (progress: number) => void;
  readonly starter?: StartEngine;
}

async function start(
  overrides: Partial<EngineSpec>,
  { onProgress = () => {}, starter = startGpuEngine }: Starting = {},
): Promise<Engine> {
  const started = await starter(engineSpec(SHIPPED_MODEL, { batchSize: 16, ...overrides }), { onProgress });
  engines.push(started);
  return started;
}

describe.skipIf(!testGpu)(`a model ${onTestGpu}`, { timeout: GPU_TEST_TIMEOUT_MS }, () => {
  let engine: Engine;
  /** Engine on the CPU. */
  let reference: Engine;
  const progress: number[] = [];
  /** Slots right after the load. */
  let loaded: SlotResult;

  beforeAll(async () => {
    engine = await start({ ...onGpu, slots: 2 }, { onProgress: (part) => progress.push(part) });
    loaded = await engine.slots({ action: "list" }, NEVER);
    reference = await start({});
  }, GPU_TEST_TIMEOUT_MS);

  afterAll(async () => {
    await Promise.all(engines.map((each) => each.close()));
    fs.rmSync(folder, { recursive: true });
  });

  test("reports progress while shaders are compiled", () => {
    // The file is read by then, so the progress stays the same.
    expect(progress.filter((part) => part === progress.at(-1)).length).toBeGreaterThan(2);
    expect(engine.info.stepMs).toBeGreaterThan(0);
  });

  test("keeps nothing of its warm-up in the slots", () => {
    const empty = expect.objectContaining({ tokens: 0 });
    expect(loaded).toEqual({ action: "list", slots: [empty, empty] });
  });

  test("gives the CPU's answer with the same probabilities", async () => {
    expect(reference.info.gpuLayers).toBe(0);
    // The output counts as one more layer.
    expect(engine.info.gpuLayers).toBe(engine.info.layers + 1);

    const expected = await thoughtsOf(reference);
    expect(expected.length).toBeGreaterThan(5);
    expect(shareOfRounding(await thoughtsOf(engine), expected)).toBeLessThan(1);

    // Every version of the model is certain of this answer.
    const chat = chatRequest("Who are you?", { maxTokens: 40 });
    const answer = await generateText(reference, chat);
    expect(answer).not.toBe("");
    expect(await generateText(engine, chat)).toBe(answer);
  });

  test("offloads as many layers as fit beside another model, and reports the number", async () => {
    const gguf = await createGgufInspector()([SHIPPED_MODEL]);
    // Such weights are repacked where the CPU computes all; here a GPU reads some of them, as they lie in the file.
    expect(gguf.quantization).toBe("Q8_0");
    const whole = engineSpec(SHIPPED_MODEL);
    const { work, output, block } = gpuNeeds(gguf, whole, 16);
    const finder = new GpuFinder({ mode: "auto", adapter: testGpu?.name, sandbox: "auto" }, async () => ({
      adapters: testGpu ? [testGpu] : [],
    }));
    const { spec, warning } = await offloadToGpu(finder, whole, gguf, {
      memory: work + output + block,
      usedByOthers: 0,
      batchSize: 16,
      extraBytes: 0,
    });
    expect(warning).toContain("Only 2 of its");
    const part = await start(spec);
    expect(part.info.gpuLayers).toBe(2);
    expect(shareOfRounding(await thoughtsOf(part), await thoughtsOf(engine))).toBeLessThan(1);
  });

  test("computes tensors on the CPU that exceed the binding limit, with the same probabilities", async () => {
    const dawnPath = writeDawnDouble(folder, { limits: { maxStorageBufferBindingSize: SMALL_BINDING } });
    // With one slot the KV cache is small enough, but the embedding, which is also the output, is not.
    const bound = await start(
      { ...onGpu, gpuLayers: 2, slots: 1 },
      { starter: gpuEngineStarter({ dawnPath }) },
    );
    expect(bound.info.gpuLayers).toBe(2);
    expect(shareOfRounding(await thoughtsOf(bound), await thoughtsOf(reference))).toBeLessThan(1);
  });

  test("serves concurrent requests and cancels one", async () => {
    const controller = new AbortController();
    const endless = promptRequest(PROMPT, {
      maxTokens: 400,
      sampling: { temperature: 0, seed: 1, ignoreEos: true },
    });
    const cancelled = (async () => {
      for await (const event of generated(engine, endless, controller.signal)) {
        if (event.type === "text-delta") controller.abort(new Error("enough"));
      }
    })();
    const beside = logprobsOf(engine, PROMPT, "a cat");
    await expect(cancelled).rejects.toThrow("enough");
    const alone = await logprobsOf(engine, PROMPT, "a cat");
    expect(shareOfRounding(await beside, alone)).toBeLessThan(1);
  });
});
