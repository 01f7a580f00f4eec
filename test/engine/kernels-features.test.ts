import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
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
import { CONVERSATION, conversationLogprobs, shareOfRounding } from "../support/forced-text.ts";
import { likeness } from "../support/likeness.ts";

/** The shipped models in our engine and in the stock one, asked the same. */

/** With four slots, for what needs nothing else. */
let ours: Engine;
let stock: Engine;
beforeAll(async () => {
  const spec = engineSpec(SHIPPED_MODEL);
  [ours, stock] = await Promise.all([startEngine(spec), startStockEngine(spec)]);
});
afterAll(() => Promise.all([ours.close(), stock.close()]));

const shipped = (name: string): string =>
  fileURLToPath(new URL(`../../models/${name}.gguf`, import.meta.url));

const TIMEOUT = { timeout: 120_000 };

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

/** Four answers at the same time. */
function sayFour(engine: Engine): Promise<TokenLogprob[][]> {
  return Promise.all(CONVERSATION.slice(0, 4).map((turn) => conversationLogprobs(engine, [turn])));
}

function embedFour(engine: Engine): Promise<number[][]> {
  return Promise.all(
    CONVERSATION.slice(0, 4).map(async ({ answer: text }) => (await engine.embed(text, NEVER)).vector),
  );
}

/** Answers that the model is sure of: what rounds otherwise does not turn them. */
async function answerGreedily(engine: Engine): Promise<string[]> {
  const texts: string[] = [];
  for (const { question } of CONVERSATION.slice(0, 2))
    texts.push(await generateText(engine, chatRequest(question, { maxTokens: 24 })));
  return texts;
}

/** Answers until they are so many tokens. */
async function textOfTokens(count: number): Promise<string> {
  const answers = CONVERSATION.map(({ answer }) => answer).join(" ");
  const options = { addSpecial: true, parseSpecial: true };
  const tokens = await ours.tokenize(answers.repeat(count / 20), options, NEVER);
  const { bytes } = await ours.pieces(tokens.slice(0, count), NEVER);
  return new TextDecoder().decode(bytes);
}

describe("log-probabilities are the stock engine's", () => {
  const [first, ...others] = CONVERSATION;

  /** The difference as a share of what rounding may cause: 1 at most. */
  async function difference(
    overrides: Partial<EngineSpec>,
    use: (engine: Engine) => Promise<TokenLogprob[]> = (engine) =>
      conversationLogprobs(engine, others.slice(0, 2)),
  ): Promise<number> {
    const spec = engineSpec(SHIPPED_MODEL, { slots: 1, ...overrides });
    const [theirs, own] = await Promise.all([
      using(startStockEngine, spec, use),
      using(startEngine, spec, use),
    ]);
    return shareOfRounding(theirs, own);
  }

  test("from four slots at once", TIMEOUT, async () => {
    const [theirs, own] = await Promise.all([stock, ours].map(sayFour));
    for (const [index, logprobs] of own!.entries())
      expect(shareOfRounding(logprobs, theirs![index]!)).toBeLessThan(1);
  });

  test("when the context is full and shifted", TIMEOUT, async () => {
    const contextSize = 256;
    const past = await textOfTokens(230);
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
    const past = await textOfTokens(1000);
    const far = await difference({ contextSize: 1280, batchSize: 256 }, async (engine) => {
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
  const [theirs, own] = await Promise.all([
    using(startStockEngine, spec, embedFour),
    using(startEngine, spec, embedFour),
  ]);
  for (const [index, vector] of own.entries())
    expect(likeness(vector, theirs[index]!)).toBeGreaterThan(0.9999);
});

test("greedy text is the stock engine's with one, two and four threads", TIMEOUT, async () => {
  const expected = await answerGreedily(stock);
  expect(expected[0]).toMatch(/^Hello/);
  expect(await answerGreedily(ours)).toEqual(expected);
  for (const threads of [2, 4])
    expect(await using(startEngine, engineSpec(SHIPPED_MODEL, { threads }), answerGreedily)).toEqual(
      expected,
    );
});
