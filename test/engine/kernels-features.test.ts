import { fileURLToPath } from "node:url";
import { describe, expect, test } from "vitest";
import type { Engine, StartEngine } from "../../src/engine/engine.ts";
import type { EngineSpec } from "../../src/engine/protocol/engine-spec.ts";
import type { TokenLogprob } from "../../src/engine/protocol/generation.ts";
import {
  chatRequest,
  collect,
  doneOf,
  engineSpec,
  generateText,
  NEVER,
  promptRequest,
  SHIPPED_MODEL,
  startEngine,
  startStockEngine,
} from "../support/engine-fixture.ts";
import { compareLogprobs, CONVERSATION, conversationLogprobs } from "../support/forced-text.ts";

/** The shipped models in our engine and in the stock one, asked the same. */

const shipped = (name: string): string =>
  fileURLToPath(new URL(`../../models/${name}.gguf`, import.meta.url));

const TIMEOUT = { timeout: 120_000 };

/** Rounding: about twice what the stock engine shows between its own settings with these weights. */
const MEAN_DIFFERENCE = 0.08;
const LARGEST_DIFFERENCE = 0.6;

function shareOfRounding(one: readonly TokenLogprob[], other: readonly TokenLogprob[]): number {
  const { mean, max } = compareLogprobs(one, other);
  return Math.max(mean / MEAN_DIFFERENCE, max / LARGEST_DIFFERENCE);
}

async function using<Result>(
  start: StartEngine,
  spec: EngineSpec,
  use: (engine: Engine) => Promise<Result>,
): Promise<Result> {
  const engine = await start(spec);
  try {
    return await use(engine);
  } finally {
    await engine.close();
  }
}

function greedyAnswer(engine: Engine, question: string, maxTokens: number): Promise<string> {
  return generateText(engine, chatRequest(question, { maxTokens }));
}

function askFour(engine: Engine): Promise<string[]> {
  return Promise.all(CONVERSATION.slice(0, 4).map(({ question }) => greedyAnswer(engine, question, 24)));
}

/** Few tokens: threads that share a processor wait for each other at every operator. */
function greet(engine: Engine): Promise<string> {
  return greedyAnswer(engine, "Hello", 3);
}

function embedFour(engine: Engine): Promise<number[][]> {
  return Promise.all(
    CONVERSATION.slice(0, 4).map(async ({ answer: text }) => (await engine.embed(text, NEVER)).vector),
  );
}

describe("greedy answers are the stock engine's", () => {
  test("from four slots at once", TIMEOUT, async () => {
    const [stock, ours] = await Promise.all([
      using(startStockEngine, engineSpec(SHIPPED_MODEL), askFour),
      using(startEngine, engineSpec(SHIPPED_MODEL), askFour),
    ]);
    expect(ours).toEqual(stock);
    expect(new Set(ours).size).toBe(4);
  });

  test("with one, two and four threads", TIMEOUT, async () => {
    const stock = await using(startStockEngine, engineSpec(SHIPPED_MODEL), greet);
    expect(stock).not.toBe("");
    for (const threads of [1, 2, 4])
      expect(await using(startEngine, engineSpec(SHIPPED_MODEL, { threads }), greet)).toBe(stock);
  });
});

describe("log-probabilities are the stock engine's", () => {
  const [first, ...others] = CONVERSATION;
  const ANSWERS = CONVERSATION.map(({ answer }) => answer).join(" ");

  /** The difference as a share of what rounding may cause: 1 at most. */
  async function difference(
    overrides: Partial<EngineSpec>,
    use: (engine: Engine) => Promise<TokenLogprob[]> = (engine) =>
      conversationLogprobs(engine, others.slice(0, 2)),
  ): Promise<number> {
    const spec = engineSpec(SHIPPED_MODEL, { slots: 1, ...overrides });
    const [stock, ours] = await Promise.all([
      using(startStockEngine, spec, use),
      using(startEngine, spec, use),
    ]);
    return shareOfRounding(stock, ours);
  }

  test("when the context is full and shifted", TIMEOUT, async () => {
    const contextSize = 256;
    const [greeting, loading, , needing] = CONVERSATION.map(({ answer }) => answer);
    const past = [ANSWERS, ANSWERS, greeting, needing, loading, needing].join(" ");
    const shifted = await difference({ contextSize, contextShift: true }, async (engine) => {
      const logprobs = await conversationLogprobs(engine, [others[0]!], past);
      const request = promptRequest(past + others[0]!.question, { maxTokens: 1 });
      const { usage } = doneOf(await collect(engine.generate(request, NEVER)));
      expect(usage.promptTokens + logprobs.length).toBeGreaterThan(contextSize);
      return logprobs;
    });
    expect(shifted).toBeLessThan(1);
  });

  test("far into a long context, also when the cache holds the prompt", TIMEOUT, async () => {
    const far = await difference({ contextSize: 2048, batchSize: 256 }, async (engine) => {
      const past = ANSWERS.repeat(15);
      const computed = await conversationLogprobs(engine, [first!], past);
      const cached = await conversationLogprobs(engine, [first!], past);
      expect(shareOfRounding(computed, cached)).toBeLessThan(1);
      return computed;
    });
    expect(far).toBeLessThan(1);
  });

  test.each<[string, Partial<EngineSpec>]>([
    ["with flash attention", { flashAttention: "true" }],
    ["with keys kept as q8_0", { cacheTypeK: "q8_0", flashAttention: "false" }],
    ["with keys and values kept as q8_0", { cacheTypeK: "q8_0", cacheTypeV: "q8_0", flashAttention: "true" }],
    ["with an adapter", { adapters: [{ path: shipped("daybreak-mini-pirate"), scale: 1 }] }],
  ])("%s", TIMEOUT, async (_, overrides) => {
    expect(await difference(overrides)).toBeLessThan(1);
  });
});

test("embeddings are the stock engine's", TIMEOUT, async () => {
  const spec = engineSpec(shipped("daybreak-mini-embed"), { purpose: "embed", batchSize: 512 });
  const [stock, ours] = await Promise.all([
    using(startStockEngine, spec, embedFour),
    using(startEngine, spec, embedFour),
  ]);
  for (const [index, vector] of ours.entries()) {
    const cosine = vector.reduce((sum, value, at) => sum + value * stock[index]![at]!, 0);
    expect(cosine).toBeGreaterThan(0.9999);
  }
});
