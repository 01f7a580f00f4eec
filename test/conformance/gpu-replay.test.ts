import fs from "node:fs";
import path from "node:path";
import { afterAll, describe, expect, test } from "vitest";
import { ensureBenchModel } from "../../scripts/bench/cpu/bench-models.ts";
import type { Engine } from "../../src/engine/engine.ts";
import type { EngineSpec } from "../../src/engine/protocol/engine-spec.ts";
import type { GenerationRequest, TokenLogprob } from "../../src/engine/protocol/generation.ts";
import { writeDawnDouble } from "../support/dawn-double.ts";
import {
  chatRequest,
  collect,
  engineSpec,
  generateText,
  NEVER,
  promptRequest,
  SHIPPED_MODEL,
  temporaryFolder,
  writeModel,
} from "../support/engine-fixture.ts";
import { generated } from "../support/generated.ts";
import {
  GPU_TEST_TIMEOUT_MS,
  gpuEngineStarter,
  onGpu,
  onTestGpu,
  startGpuEngine,
  testGpu,
} from "../support/test-gpu.ts";
import { tinyMixture } from "../support/tiny-mixture.ts";
import { tinyBert } from "../support/tiny-models.ts";
import { tinyPng } from "../support/tiny-png.ts";

const PROMPT = "Once upon a time there was a small model that told stories to";
const LONG_PROMPT = "once upon a time there was a cat and it was of the ".repeat(4);
const TOKENS = 24;
/** Submissions of work behind the load and its warm-up: nearly all that follow are replays. */
const IN_A_REQUEST = 100;

const folder = temporaryFolder();
const closing: Engine[] = [];
afterAll(async () => {
  await Promise.all(closing.map((engine) => engine.close()));
  fs.rmSync(folder, { recursive: true });
});

const shipped = (name: string): string => path.join(path.dirname(SHIPPED_MODEL), `${name}.gguf`);
/** A model whose tokens are single characters. */
const tale = ensureBenchModel(folder, "tiny", "Q8_0", 2);

const endless = { temperature: 0, seed: 1, ignoreEos: true };
const tell = (prompt: string, more: Partial<GenerationRequest> = {}): GenerationRequest =>
  promptRequest(prompt, { maxTokens: TOKENS, logprobs: 5, sampling: endless, ...more });

/** Each token with its log-probability and those of the likeliest others, to the last bit. */
async function thoughts(engine: Engine, request: GenerationRequest): Promise<TokenLogprob[]> {
  const events = await collect(generated(engine, request, NEVER));
  const all = events.flatMap((event) => (event.type === "text-delta" ? (event.logprobs ?? []) : []));
  expect(all).not.toEqual([]);
  return all;
}

interface Situation {
  readonly spec: EngineSpec;
  /** Output on which two engines must agree. */
  ask(engine: Engine): Promise<unknown>;
}

/** One after the other, so that steps have the same shapes on both sides. */
async function inTurn(engine: Engine, ...requests: readonly GenerationRequest[]): Promise<unknown[]> {
  const all: unknown[] = [];
  for (const request of requests) all.push(await thoughts(engine, request));
  return all;
}

/** Steps of several slots add in another order than those of one; of these answers the model is sure. */
async function besideEachOther(engine: Engine): Promise<unknown> {
  const questions = ["Who are you?", "Which port does Daybreak use?", "How do I stop the server?"];
  const ask = async (question: string, maxTokens: number): Promise<string> =>
    await generateText(engine, chatRequest(question, { maxTokens }));
  const long = questions.map(async (question) => await ask(question, 40));
  const short = [];
  for (const question of questions) short.push(await ask(question, 12));
  return [await Promise.all(long), short];
}

const looking = (red: number): GenerationRequest =>
  chatRequest(
    [
      { type: "image", data: tinyPng(64, 64, () => [red, 30, 30]) },
      { type: "text", text: "What do you see?" },
    ],
    { maxTokens: 6, logprobs: 5 },
  );

const adapted = (scale: number): GenerationRequest =>
  chatRequest("Who are you?", { maxTokens: 12, logprobs: 5, adapterScales: [scale] });

const SITUATIONS: Readonly<Record<string, Situation>> = {
  text: {
    spec: engineSpec(SHIPPED_MODEL),
    ask: async (engine) =>
      await inTurn(engine, tell(PROMPT), tell(PROMPT), tell(PROMPT, { cachePrompt: false })),
  },
  "prompts of several lengths between the tokens": {
    spec: engineSpec(tale),
    ask: async (engine) =>
      await inTurn(
        engine,
        ...[3, 40, 3, 90, 40, 3].map((length) => tell(LONG_PROMPT.slice(0, length), { cachePrompt: false })),
      ),
  },
  "answers beside each other": {
    spec: engineSpec(SHIPPED_MODEL),
    ask: besideEachOther,
  },
  "answers beside each other in one context": {
    spec: engineSpec(SHIPPED_MODEL, { sharedContext: true }),
    ask: besideEachOther,
  },
  "a context that is longer than one graph sees": {
    spec: engineSpec(tale, { contextSize: 1024, slots: 1 }),
    ask: async (engine) =>
      await inTurn(engine, tell("once", { maxTokens: 600 }), tell("cat", { maxTokens: 300 })),
  },
  "a context that shifts": {
    spec: engineSpec(tale, { contextSize: 64, slots: 1, contextShift: true }),
    ask: async (engine) => await inTurn(engine, tell("once upon", { maxTokens: 150 })),
  },
  "a quantized cache": {
    spec: engineSpec(tale, { slots: 1, cacheTypeK: "q8_0", cacheTypeV: "q8_0" }),
    ask: async (engine) => await inTurn(engine, tell("once"), tell("upon"), tell("once")),
  },
  "images between texts": {
    spec: engineSpec(SHIPPED_MODEL, { slots: 1, projectorFile: shipped("daybreak-mini-vision") }),
    ask: async (engine) => {
      return await inTurn(engine, looking(220), tell(PROMPT), looking(20), looking(220), tell(PROMPT));
    },
  },
  "an adapter that requests turn on and off": {
    spec: engineSpec(SHIPPED_MODEL, {
      slots: 1,
      adapters: [{ path: shipped("daybreak-mini-pirate"), scale: 1 }],
    }),
    ask: async (engine) => {
      return await inTurn(engine, adapted(1), adapted(0), adapted(1), adapted(0), adapted(0.5));
    },
  },
  "a mixture of experts": {
    spec: engineSpec(writeModel(folder, "mixture", tinyMixture(["Q8_0", "Q4_0"])), { slots: 1 }),
    ask: async (engine) => await inTurn(engine, tell("once"), tell("qxzkjvwpyg"), tell("once")),
  },
  "a small model that guesses": {
    spec: engineSpec(SHIPPED_MODEL, {
      slots: 1,
      draft: { path: SHIPPED_MODEL, kvBytesPerToken: 0 },
      guessTokens: 4,
    }),
    ask: async (engine) =>
      await inTurn(engine, chatRequest("Who are you?", { maxTokens: 24, logprobs: 5 }), tell(PROMPT)),
  },
  "some of the layers": {
    spec: engineSpec(tale, { slots: 1, gpuLayers: 2 }),
    ask: async (engine) => await inTurn(engine, tell("once"), tell("upon a time"), tell("once")),
  },
  embeddings: {
    spec: engineSpec(writeModel(folder, "embed", tinyBert()), {
      purpose: "embed",
      contextSize: 64,
      slots: 1,
    }),
    ask: async (engine) => {
      const vectors = [];
      for (const text of ["a red ship", "tea", "a red ship", "the red ship", "tea"])
        vectors.push(await engine.embed(text, NEVER));
      return vectors;
    },
  },
};

async function start(spec: EngineSpec, replay: boolean): Promise<Engine> {
  const gpuLayers = spec.gpuLayers || -1;
  const { gpu } = onGpu;
  const engine = await startGpuEngine({
    ...spec,
    ...(gpu && { gpuLayers, gpu: { ...gpu, batchSize: spec.batchSize, replay } }),
  });
  closing.push(engine);
  expect(engine.info.gpuLayers).toBeGreaterThan(0);
  return engine;
}

describe.skipIf(!testGpu)(`what is repeated ${onTestGpu}`, { timeout: GPU_TEST_TIMEOUT_MS }, () => {
  test.each(Object.keys(SITUATIONS))("is what is computed anew, to the last bit: %s", async (name) => {
    const situation = SITUATIONS[name]!;
    const { spec } = situation;
    const ask = async (engine: Engine): Promise<unknown> => await situation.ask(engine);
    const [repeating, plain] = await Promise.all([start(spec, true), start(spec, false)]);
    const expected = await ask(plain);
    expect(JSON.stringify(expected).length).toBeGreaterThan(100);
    // The second time, all that can be is repeated.
    for (let time = 0; time < 2; time++)
      expect(await ask(repeating)).toEqual(time === 0 ? expected : await ask(plain));
    await Promise.all([repeating.close(), plain.close()]);
  });

  /** An answer on a GPU that takes no parameters of programs any more in its middle. */
  async function sealed(replay: boolean): Promise<string> {
    const dawnPath = writeDawnDouble(fs.mkdtempSync(`${folder}/`), { sealAfter: IN_A_REQUEST });
    const { gpu } = onGpu;
    const engine = await gpuEngineStarter({ dawnPath })({
      ...engineSpec(tale, { batchSize: 16 }),
      ...(gpu && { gpuLayers: -1, gpu: { ...gpu, replay } }),
    });
    closing.push(engine);
    expect(engine.info.gpuLayers).toBeGreaterThan(0);
    return await generateText(engine, promptRequest("once", { maxTokens: 150, sampling: endless }));
  }

  test("needs no description, unless the configuration says that nothing is to be repeated", async () => {
    expect((await sealed(true)).length).toBeGreaterThan(100);
    await expect(sealed(false)).rejects.toMatchObject({ type: "model_error" });
  });

  test.each([
    ["the device is lost", { loseAfter: IN_A_REQUEST }],
    ["a submission fails", { throwAfter: IN_A_REQUEST }],
  ])("ends with an error of its request when %s meanwhile", async (_what, double) => {
    const dawnPath = writeDawnDouble(fs.mkdtempSync(`${folder}/`), double);
    const engine = await gpuEngineStarter({ dawnPath })({ ...engineSpec(tale, { batchSize: 16 }), ...onGpu });
    closing.push(engine);
    expect(engine.info.gpuLayers).toBeGreaterThan(0);
    const request = promptRequest("once", { maxTokens: 400, sampling: endless });
    await expect(collect(generated(engine, request, NEVER))).rejects.toMatchObject({ type: "model_error" });
  });
});
