import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { Engine } from "../../src/engine/engine.ts";
import { GpuFinder } from "../../src/engine/gpu/gpu-finder.ts";
import { gpuNeeds } from "../../src/engine/gpu/gpu-memory.ts";
import { placeOnGpu } from "../../src/engine/gpu/place-on-gpu.ts";
import type { EngineSpec } from "../../src/engine/protocol/engine-spec.ts";
import type { GenerationEvent } from "../../src/engine/protocol/generation.ts";
import { createGgufInspector } from "../../src/models/gguf/inspect-gguf.ts";
import {
  chatRequest,
  collect,
  engineSpec,
  generateText,
  NEVER,
  promptRequest,
  SHIPPED_MODEL,
  textOf,
} from "../support/engine-fixture.ts";
import { GPU_TEST_TIMEOUT_MS, onGpu, onTestGpu, startGpuEngine, testGpu } from "../support/test-gpu.ts";

/**
 * Largest difference between a log-probability on the GPU and on the CPU: before a product the CPU rounds activations
 * to 8 bits, as the weights are, while the GPU keeps floats.
 */
const LOGPROB_TOLERANCE = 0.1;

const PROMPT = "Once upon a time there was a small model that told stories to";

const engines: Engine[] = [];

async function start(overrides: Partial<EngineSpec>): Promise<Engine> {
  const started = await startGpuEngine(engineSpec(SHIPPED_MODEL, { batchSize: 16, ...overrides }));
  engines.push(started);
  return started;
}

function topLogprobs(events: readonly GenerationEvent[]): Map<string, number>[] {
  return events
    .flatMap((event) => (event.type === "text-delta" ? (event.logprobs ?? []) : []))
    .map(({ top }) => new Map(top.map(({ token, logprob }) => [token, logprob])));
}

/** Of tokens that are among the first five on both sides: the last of them may change places with a sixth. */
function largestDifference(some: Map<string, number>[], others: Map<string, number>[]): number {
  const differences = some.flatMap((top, position) =>
    [...top].map(([token, logprob]) => Math.abs(logprob - (others[position]?.get(token) ?? logprob))),
  );
  return Math.max(...differences);
}

describe.skipIf(!testGpu)(`a model ${onTestGpu}`, { timeout: GPU_TEST_TIMEOUT_MS }, () => {
  let engine: Engine;

  beforeAll(async () => {
    engine = await start(onGpu);
  }, GPU_TEST_TIMEOUT_MS);

  afterAll(async () => {
    await Promise.all(engines.map((each) => each.close()));
  });

  test("says what it says on the CPU, with the same probabilities", async () => {
    const reference = await start({});
    expect(reference.info.gpuLayers).toBe(0);
    // The output layer counts as one more.
    expect(engine.info.gpuLayers).toBe(engine.info.layers + 1);

    const request = promptRequest(PROMPT, { maxTokens: 24, logprobs: 5 });
    const expected = await collect(reference.generate(request, NEVER));
    const found = await collect(engine.generate(request, NEVER));
    expect(textOf(found)).toBe(textOf(expected));

    const [first] = topLogprobs(expected);
    const [same] = topLogprobs(found);
    expect([...(same?.keys() ?? [])].toSorted()).toEqual([...(first?.keys() ?? [])].toSorted());
    expect(largestDifference(topLogprobs(expected), topLogprobs(found))).toBeLessThan(LOGPROB_TOLERANCE);

    const chat = chatRequest("What is your name?", { maxTokens: 16 });
    expect(await generateText(engine, chat)).toBe(await generateText(reference, chat));
  });

  test("takes the layers that a small memory holds and says how many, beside another model", async () => {
    const gguf = await createGgufInspector()([SHIPPED_MODEL]);
    const whole = engineSpec(SHIPPED_MODEL);
    const { work, output, block } = gpuNeeds(gguf, whole, 16);
    const finder = new GpuFinder(
      { mode: "auto", adapter: testGpu?.name, powerPreference: "high-performance", sandbox: false },
      async () => ({ adapters: testGpu ? [testGpu] : [] }),
    );
    const { spec, warning } = await placeOnGpu(finder, whole, gguf, {
      memory: work + output + block,
      batchSize: 16,
      besides: 0,
    });
    expect(warning).toContain("Only 2 of its");
    const part = await start(spec);
    expect(part.info.gpuLayers).toBe(2);
    const request = promptRequest(PROMPT, { maxTokens: 12 });
    const [one, other] = await Promise.all([generateText(engine, request), generateText(part, request)]);
    expect(other).toBe(one);
  });

  test("serves several requests at once, and obeys a cancel", async () => {
    const controller = new AbortController();
    const endless = promptRequest(PROMPT, {
      maxTokens: 400,
      sampling: { temperature: 0, seed: 1, ignoreEos: true },
    });
    const cancelled = (async () => {
      for await (const event of engine.generate(endless, controller.signal)) {
        if (event.type === "text-delta") controller.abort(new Error("enough"));
      }
    })();
    const beside = generateText(engine, promptRequest(PROMPT, { maxTokens: 6 }));
    await expect(cancelled).rejects.toThrow("enough");
    const alone = await generateText(engine, promptRequest(PROMPT, { maxTokens: 6 }));
    expect(await beside).toBe(alone);
  });
});
