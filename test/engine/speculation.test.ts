import fs from "node:fs";
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from "vitest";
import type { Engine } from "../../src/engine/engine.ts";
import type { GenerationEvent, GenerationRequest } from "../../src/engine/protocol/generation.ts";
import {
  chatRequest,
  collect,
  doneOf,
  engineSpec,
  NEVER,
  promptRequest,
  SHIPPED_MODEL,
  startEngine,
  temporaryFolder,
  textOf,
  writeModel,
} from "../support/engine-fixture.ts";
import { agreeingPair } from "../support/agreeing-pair.ts";
import { byteLevelLlama } from "../support/byte-level-llama.ts";
import { generated } from "../support/generated.ts";
import { tinyLlama } from "../support/tiny-models.ts";

/** Request that makes the shipped model repeat itself. */
const REPETITIVE = "The quick brown fox jumps over the lazy dog and runs away. ".repeat(3);

const WEATHER = {
  name: "get_weather",
  description: "Tells the weather in a place.",
  parameters: { type: "object", properties: { city: { type: "string" } }, required: ["city"] },
};

/** Events as a client gets them, without call ids and statistics. */
const words = (events: readonly GenerationEvent[]) =>
  events
    .filter(({ type }) => type !== "done" && type !== "prompt-progress" && type !== "answer-progress")
    .map((event) => (event.type === "tool-call-start" ? { name: event.name, index: event.index } : event));

test("a draft model with another vocabulary is refused, while llama.cpp would ignore it", async () => {
  const folder = temporaryFolder();
  onTestFinished(() => fs.rmSync(folder, { recursive: true }));
  const model = writeModel(folder, "model", tinyLlama());
  const draft = { path: writeModel(folder, "draft", byteLevelLlama()), kvBytesPerToken: 0 };
  await expect(startEngine(engineSpec(model, { draft }))).rejects.toMatchObject({
    code: "invalid_model_file",
    message: expect.stringContaining("draft model"),
  });
});

describe("guesses of a draft model that agrees", () => {
  const folder = temporaryFolder();
  let engine: Engine;
  beforeAll(async () => {
    const { model, draft } = agreeingPair();
    const spec = {
      draft: { path: writeModel(folder, "draft", draft), kvBytesPerToken: 0 },
      guessTokens: 15,
    };
    engine = await startEngine(engineSpec(writeModel(folder, "model", model), spec));
  });
  afterAll(async () => {
    await engine.close();
    fs.rmSync(folder, { recursive: true });
  });

  const answer = async (prompt: string, guessTokens?: number): Promise<GenerationEvent[]> => {
    const sampling = { temperature: 0, ...(guessTokens !== undefined && { guessTokens }) };
    return await collect(generated(engine, promptRequest(prompt, { maxTokens: 64, sampling }), NEVER));
  };

  test("become longer and change no later answers", async () => {
    const expected = textOf(await answer("A", 0));
    const first = await answer("A");
    expect(textOf(first)).toBe(expected);
    const { tokens = 0, kept = 0 } = doneOf(first).usage.guesses ?? {};
    // Steps of 2, 4, 8 and then 16 tokens, the last of which may guess beyond the end; few of 16 where other programs
    // make those take long.
    expect(kept).toBeGreaterThan(1 + 3 + 7);
    expect(tokens).toBeLessThan(75);
    for (let request = 0; request < 2; request++) expect(textOf(await answer("A"))).toBe(expected);
  });

  test("change no answers after a cancel and in slots that others have used", async () => {
    const prompts = ["A", "Bc", "1 2", "+"];
    const expected = [];
    for (const prompt of prompts) expected.push(textOf(await answer(prompt, 0)));
    for await (const { type } of generated(engine, promptRequest("Read on. ".repeat(40)), NEVER))
      if (type === "prompt-progress") break;
    for (let round = 0; round < 2; round++) {
      const events = await Promise.all(prompts.map(async (prompt) => await answer(prompt)));
      expect(events.map(textOf)).toEqual(expected);
    }
    const alone = await answer(prompts[2]!);
    expect(textOf(alone)).toBe(expected[2]);
    expect(doneOf(alone).usage.guesses?.kept).toBeGreaterThan(0);
  });
});

describe("guesses", () => {
  let engine: Engine;
  beforeAll(async () => {
    const draft = { path: SHIPPED_MODEL, kvBytesPerToken: 0 };
    const spec = { draft, guessTokens: 16, sharedContext: true, contextSize: 2048 };
    engine = await startEngine(engineSpec(SHIPPED_MODEL, spec));
  });
  afterAll(() => engine.close());

  const run = async (request: GenerationRequest): Promise<GenerationEvent[]> =>
    await collect(generated(engine, request, NEVER));

  /** Results of a request with and without speculation. */
  async function both(request: GenerationRequest) {
    const plain = { ...request, sampling: { ...request.sampling, guessTokens: 0 } };
    const without = await run(plain);
    const withGuesses = await run(request);
    return { without, withGuesses, guesses: doneOf(withGuesses).usage.guesses };
  }

  test.each([
    ["the most likely text", { temperature: 0 }],
    ["what a seed draws", { temperature: 0.7, topK: 20, seed: 5 }],
  ])("do not change %s, and report accepted tokens", async (_what, sampling) => {
    const request = promptRequest(REPETITIVE, { maxTokens: 96, sampling: { ...sampling, ignoreEos: true } });
    const { without, withGuesses, guesses } = await both(request);
    expect(textOf(withGuesses)).toBe(textOf(without));
    expect(doneOf(withGuesses).usage.completionTokens).toBe(96);
    expect(doneOf(without).usage.guesses).toBeUndefined();
    expect(guesses?.tokens).toBeGreaterThan(0);
    expect(guesses?.kept).toBeLessThanOrEqual(guesses!.tokens);
  });

  test("are accepted in repetitive text, which takes fewer steps", async () => {
    const request = promptRequest(REPETITIVE, {
      maxTokens: 64,
      sampling: { temperature: 0, ignoreEos: true, logitBias: [{ token: 300, bias: 100 }] },
    });
    const { guesses } = await both(request);
    expect(guesses!.kept).toBeGreaterThan(32);
    expect(guesses!.kept / guesses!.tokens).toBeGreaterThan(0.8);
  });

  test("do not change a tool call with a grammar", async () => {
    const request = chatRequest(
      "What is the weather in Paris? Paris, Paris, Paris, Paris.",
      { maxTokens: 96 },
      { tools: [WEATHER], toolChoice: "required" },
    );
    const { without, withGuesses } = await both(request);
    expect(words(without).length).toBeGreaterThan(1);
    expect(words(withGuesses)).toEqual(words(without));
  });

  test("do not change concurrent answers that end at a stop sequence or a limit", async () => {
    const requests = [40, 50, 60, 70].map((maxTokens, index) =>
      promptRequest(`${index} ${REPETITIVE}`, {
        maxTokens,
        stop: ["zebra"],
        sampling: { temperature: 0, ignoreEos: true },
      }),
    );
    const together = await Promise.all(requests.map(run));
    const alone = [];
    for (const request of requests)
      alone.push(await run({ ...request, sampling: { ...request.sampling, guessTokens: 0 } }));
    expect(together.map(textOf)).toEqual(alone.map(textOf));
  });
});
