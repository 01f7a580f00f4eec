import path from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { Engine, StartEngine } from "../../src/engine/engine.ts";
import type { EngineSpec } from "../../src/engine/protocol/engine-spec.ts";
import type { TokenLogprob } from "../../src/engine/protocol/generation.ts";
import { type AskedLine, say, sayAll, specOf } from "../support/ask-comparison.ts";
import {
  collect,
  doneOf,
  engineSpec,
  NEVER,
  promptRequest,
  SHIPPED_MODEL,
  startEngine,
  startStockEngine,
} from "../support/engine-fixture.ts";
import { CONVERSATION, shareOfRounding } from "../support/forced-text.ts";
import { likeness } from "../support/likeness.ts";
import {
  type Comparison,
  FAR,
  FOUR_BEGINNINGS,
  LIKELIEST,
  SETTINGS,
  SHIFTED,
} from "../support/stock-comparisons.ts";
import { stockAnswers } from "../support/stock-record.ts";
import { generated } from "../support/generated.ts";

/** The shipped models in our engine and in the stock one, asked the same. */

/** With four slots, for what needs nothing else. */
let ours: Engine;
beforeAll(async () => {
  ours = await startEngine(engineSpec(SHIPPED_MODEL));
});
afterAll(() => ours.close());

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

/** Recorded answers of the stock engine to a comparison about the shipped model. */
function stockOf(comparison: Comparison): ReturnType<typeof stockAnswers> {
  return stockAnswers(comparison, specOf(comparison, ""));
}

const EMBEDDING_MODEL = path.join(path.dirname(SHIPPED_MODEL), "daybreak-mini-embed.gguf");

function embedFour(engine: Engine): Promise<number[][]> {
  return Promise.all(
    CONVERSATION.slice(0, 4).map(async ({ answer: text }) => (await engine.embed(text, NEVER)).vector),
  );
}

describe("log-probabilities are the stock engine's", () => {
  type Use = (engine: Engine, lines: readonly AskedLine[]) => Promise<TokenLogprob[][]>;

  /** The difference as a share of what rounding may cause: 1 at most. */
  async function difference(comparison: Comparison, use: Use = sayAll): Promise<number> {
    const { lines, said } = stockOf(comparison);
    const own = await using(startEngine, specOf(comparison, ""), (engine) => use(engine, lines));
    return shareOfRounding(said.flat(), own.flat());
  }

  test("from four slots at once", TIMEOUT, async () => {
    const { lines, said } = stockOf(FOUR_BEGINNINGS);
    const own = await Promise.all(lines.map((line) => say(ours, line)));
    expect(own).toHaveLength(4);
    for (const [index, logprobs] of own.entries())
      expect(shareOfRounding(said[index]!, logprobs)).toBeLessThan(1);
  });

  test("when the context is full and shifted", TIMEOUT, async () => {
    const shifted = await difference(SHIFTED, async (engine, lines) => {
      const said = await sayAll(engine, lines);
      const request = promptRequest(lines[0]!.prompt, { maxTokens: 1 });
      const { usage } = doneOf(await collect(generated(engine, request, NEVER)));
      expect(usage.promptTokens + said[0]!.length).toBeGreaterThan(SHIFTED.settings.contextSize!);
      return said;
    });
    expect(shifted).toBeLessThan(1);
  });

  test("far into a long context, also when the cache holds the prompt", TIMEOUT, async () => {
    const far = await difference(FAR, async (engine, lines) => {
      const computed = await sayAll(engine, lines);
      const cached = await sayAll(engine, lines);
      expect(shareOfRounding(computed[0]!, cached[0]!)).toBeLessThan(1);
      return computed;
    });
    expect(far).toBeLessThan(1);
  });

  test.each(SETTINGS)(
    "gives the stock engine's log-probabilities with $name",
    TIMEOUT,
    async (comparison) => {
      expect(await difference(comparison)).toBeLessThan(1);
    },
  );
});

test("embeddings are the stock engine's", TIMEOUT, async () => {
  const spec = engineSpec(EMBEDDING_MODEL, { purpose: "embed", batchSize: 512 });
  const [theirs, own] = await Promise.all([
    using(startStockEngine, spec, embedFour),
    using(startEngine, spec, embedFour),
  ]);
  for (const [index, vector] of own.entries())
    expect(likeness(vector, theirs[index]!)).toBeGreaterThan(0.9999);
});

test("the likeliest text is the stock engine's with one, two and four threads", TIMEOUT, async () => {
  const { lines, said } = stockOf(LIKELIEST);
  const expected = said.map(textOf);
  expect(expected[0]).toMatch(/api\/models\/load/);
  const answers = async (engine: Engine): Promise<string[]> => (await sayAll(engine, lines)).map(textOf);
  expect(await answers(ours)).toEqual(expected);
  for (const threads of [2, 4])
    expect(await using(startEngine, engineSpec(SHIPPED_MODEL, { threads }), answers)).toEqual(expected);
});

function textOf(said: readonly TokenLogprob[]): string {
  return said.map(({ token }) => token).join("");
}
