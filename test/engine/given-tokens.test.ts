import { afterAll, beforeAll, describe, expect, test } from "vitest";
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
  textOf,
} from "../support/engine-fixture.ts";
import { generated } from "../support/generated.ts";

const WEATHER = {
  name: "get_weather",
  parameters: { type: "object", properties: { city: { type: "string" } }, required: ["city"] },
};
const PERSON = {
  type: "object",
  properties: { name: { type: "string" }, age: { type: "integer" } },
  required: ["name", "age"],
  additionalProperties: false,
};
const STORY = "The quick brown fox jumps over the lazy dog and";
const SAMPLED = { temperature: 3, topK: 200, topP: 0.99, seed: 11 } as const;
/** Samplers that depend on earlier tokens. */
const REMEMBERING = {
  ...SAMPLED,
  repeatPenalty: 1.3,
  repeatLastN: 64,
  presencePenalty: 0.4,
  frequencyPenalty: 0.4,
  dryMultiplier: 0.8,
  xtcProbability: 0.5,
  xtcThreshold: 0.1,
} as const;

/** Token ids of an answer, and how many prefix tokens the sampler would not have chosen. */
function tokensOf(events: readonly GenerationEvent[]): { ids: number[]; replaced: number } {
  const tokenEvents = events.filter((event) => event.type === "tokens");
  return {
    ids: tokenEvents.flatMap(({ ids }) => ids),
    replaced: tokenEvents.reduce((sum, { replaced }) => sum + replaced, 0),
  };
}

/** Events as a client gets them: joined texts by kind, without call ids, and the end. */
function saidOf(events: readonly GenerationEvent[]) {
  const { reason, stopSequence, usage } = doneOf(events);
  const said: { [kind: string]: string } = {};
  const logprobs: unknown[] = [];
  for (const event of events) {
    const add = (kind: string, text: string): void => void (said[kind] = (said[kind] ?? "") + text);
    if (event.type === "text-delta") add("text", event.text);
    else if (event.type === "reasoning-delta") add("reasoning", event.text);
    else if (event.type === "tool-call-start") add(`call ${event.index}`, `${event.name} `);
    else if (event.type === "tool-call-delta") add(`call ${event.index}`, event.arguments);
    if (event.type === "text-delta") logprobs.push(...(event.logprobs ?? []));
  }
  const { promptTokens, completionTokens } = usage;
  return { said, logprobs, reason, stopSequence, promptTokens, completionTokens };
}

describe("an answer with prefix tokens", () => {
  let engine: Engine;
  beforeAll(async () => {
    engine = await startEngine(engineSpec(SHIPPED_MODEL, { guessTokens: 16, contextSize: 1024 }));
  });
  afterAll(() => engine.close());

  const run = async (request: GenerationRequest): Promise<GenerationEvent[]> =>
    await collect(generated(engine, { ...request, reportsTokens: true }, NEVER));

  test.each<[string, GenerationRequest]>([
    ["the most likely text", promptRequest(STORY, { maxTokens: 80 })],
    ["what a seed draws", promptRequest(STORY, { maxTokens: 60, sampling: SAMPLED })],
    [
      "what samplers draw that remember what was said",
      promptRequest(STORY, { maxTokens: 60, sampling: REMEMBERING }),
    ],
    ["mirostat", promptRequest(STORY, { maxTokens: 60, sampling: { temperature: 2, mirostat: 2, seed: 3 } })],
    [
      "an answer that a schema binds",
      chatRequest("Describe a person as JSON.", {
        maxTokens: 60,
        format: { type: "json_schema", schema: PERSON },
        sampling: SAMPLED,
      }),
    ],
    [
      "a tool call that is required",
      chatRequest(
        "What is the weather in Paris?",
        { maxTokens: 60, sampling: SAMPLED },
        { tools: [WEATHER], toolChoice: "required" },
      ),
    ],
    [
      "a tool call that is allowed",
      chatRequest("What is the weather in Paris?", { maxTokens: 60 }, { tools: [WEATHER] }),
    ],
    ["log-probabilities", promptRequest(STORY, { maxTokens: 24, sampling: SAMPLED, logprobs: 2 })],
  ])("equals one without them: %s", async (_what, request) => {
    const whole = await run(request);
    const { ids } = tokensOf(whole);
    expect(ids.length).toBeGreaterThan(16);
    for (const count of [ids.length >> 1, ids.length - 1]) {
      const moved = await run({ ...request, given: ids.slice(0, count), cachePrompt: false });
      expect(saidOf(moved)).toEqual(saidOf(whole));
      expect(tokensOf(moved)).toEqual({ ids, replaced: 0 });
    }
  });

  test("ends at a stop sequence that begins in the prefix, or is in it", async () => {
    const plain = promptRequest(STORY, { maxTokens: 60, sampling: REMEMBERING });
    const events = await run(plain);
    const { ids } = tokensOf(events);
    const text = textOf(events);
    const stop = [text.slice(text.length >> 1, (text.length >> 1) + 12)];
    const whole = await run({ ...plain, stop });
    expect(saidOf(whole)).toMatchObject({ reason: "stop", stopSequence: stop[0] });
    const { length } = tokensOf(whole).ids;
    for (const count of [length - 3, length, ids.length])
      expect(saidOf(await run({ ...plain, stop, given: ids.slice(0, count) }))).toEqual(saidOf(whole));
  });

  test("ends at its limit, which includes the prefix, and at an end token in the prefix", async () => {
    const request = promptRequest(STORY, { maxTokens: 40, sampling: SAMPLED });
    const { ids } = tokensOf(await run(request));
    const short = { ...request, maxTokens: 20 };
    expect(saidOf(await run({ ...short, given: ids }))).toEqual(saidOf(await run(short)));
    const call = chatRequest("What is the weather in Paris?", { maxTokens: 60 }, { tools: [WEATHER] });
    const whole = await run(call);
    expect(saidOf(await run({ ...call, given: tokensOf(whole).ids }))).toEqual(saidOf(whole));
  });

  test("continues from prefix tokens that it would not have chosen, and reports them", async () => {
    const request = promptRequest(STORY, { maxTokens: 40 });
    const { ids } = tokensOf(await run({ ...request, sampling: REMEMBERING }));
    const given = ids.slice(0, 30);
    const events = await run({ ...request, given });
    expect(tokensOf(events).ids.slice(0, 30)).toEqual(given);
    expect(tokensOf(events).replaced).toBeGreaterThan(3);
    expect(doneOf(events).usage).toMatchObject({ completionTokens: 40 });
    expect(doneOf(events).usage.guesses).toBeUndefined();
  });

  test("is the same during other requests, and refuses unknown token ids", async () => {
    const requests = [1, 2, 3, 4].map((seed) =>
      promptRequest(`${seed} ${STORY}`, { maxTokens: 40, sampling: { ...REMEMBERING, seed } }),
    );
    const alone: GenerationEvent[][] = [];
    for (const request of requests) alone.push(await run(request));
    const together = await Promise.all(
      requests.map((request, index) => run({ ...request, given: tokensOf(alone[index]!).ids.slice(0, 25) })),
    );
    expect(together.map(saidOf)).toEqual(alone.map(saidOf));
    const given = [engine.info.vocabSize];
    await expect(run({ ...requests[0]!, given })).rejects.toMatchObject({ code: "invalid_parameter" });
  });

  /** State of the first slot. */
  async function stateOf(): Promise<Buffer> {
    const saved = await engine.slots({ action: "save", slot: 0, most: 2 ** 30 }, NEVER);
    const bytes = saved.action === "save" ? saved.bytes : 0;
    const parts: Uint8Array[] = [];
    for (let offset = 0; offset < bytes; offset += parts.at(-1)?.length ?? 0) {
      const read = await engine.slots({ action: "read", offset }, NEVER);
      if (read.action !== "read" || read.data.length === 0) throw new Error("the state has no end");
      parts.push(read.data);
    }
    return Buffer.concat(parts);
  }

  test("computes the same state for a batch of prefix tokens as for single ones", async () => {
    const sampling = { ...REMEMBERING, ignoreEos: true, guessTokens: 0 };
    const request = promptRequest(STORY, { maxTokens: 250, sampling, slot: 0, cachePrompt: false });
    const { ids } = tokensOf(await run(request));
    const state = await stateOf();
    const events = await run({ ...request, given: ids.slice(0, 240) });
    expect(tokensOf(events)).toEqual({ ids, replaced: 0 });
    // Each step reports its tokens once.
    expect(events.filter(({ type }) => type === "tokens").length).toBeLessThan(30);
    expect((await stateOf()).equals(state)).toBe(true);
  });
});
