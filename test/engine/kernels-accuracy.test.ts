import fs from "node:fs";
import path from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { StartEngine } from "../../src/engine/engine.ts";
import type { TokenLogprob } from "../../src/engine/protocol/generation.ts";
import {
  engineSpec,
  SHIPPED_MODEL,
  startEngine,
  startStockEngine,
  temporaryFolder,
} from "../support/engine-fixture.ts";
import {
  CONVERSATION,
  compareLogprobs,
  conversationLogprobs,
  perplexity,
  type Turn,
  withTokens,
} from "../support/forced-text.ts";
import type { CopyType } from "../support/make-quantised-blocks.ts";
import { makeQuantised } from "../support/make-quantised.ts";

const folder = temporaryFolder();
afterAll(() => fs.rmSync(folder, { recursive: true }));

const POSITIONS = 64;
/** Turns with about twice as many positions: what stock takes for each costs more than all else here. */
const TURNS = 7;
const PERPLEXITY_TOLERANCE = 0.001;
/**
 * Stock differs from itself when its flash attention is switched on, because it adds in another order; ours may differ
 * from stock as much, with flash attention and without. Both are rounding of the same size, so neither bounds the other
 * to the last digit: means of 1,500 differences were 0.72 to 1.06 of stock's own, maxima 0.79 to 1.31.
 */
const MEAN_FACTOR = 1.15;
const MAX_FACTOR = 1.5;

/** llama.cpp's mixtures of K types keep some matrices in more bits. */
const mixture =
  (type: CopyType, sensitive: CopyType) =>
  (matrix: string): CopyType =>
    /^token_embd|attn_v|ffn_down/.test(matrix) ? sensitive : type;

/** Types that few files are in are tried together: matrices take turns. */
const RARE_TYPES = [
  "Q5_1",
  "BF16",
  "Q4_1",
  "Q3_K",
  "Q5_0",
  "IQ4_XS",
  "IQ4_NL",
  "Q2_K",
  "MXFP4",
  "F32",
] as const satisfies CopyType[];

function inTurns(types: readonly CopyType[]): () => CopyType {
  let matrices = 0;
  return () => types[matrices++ % types.length]!;
}

let conversation: readonly Turn[];
beforeAll(async () => {
  const engine = await startEngine(engineSpec(SHIPPED_MODEL, { slots: 1 }));
  conversation = await withTokens(engine, CONVERSATION.slice(0, TURNS));
  await engine.close();
});

async function measure(
  start: StartEngine,
  file: string,
  flashAttention: "true" | "false",
): Promise<TokenLogprob[]> {
  const engine = await start(engineSpec(file, { flashAttention, slots: 1 }));
  try {
    return await conversationLogprobs(engine, conversation);
  } finally {
    await engine.close();
  }
}

describe.each([
  // Flash attention of ours reads the cache, whose type these weights do not change: once is enough.
  ["Q4_0", mixture("Q4_0", "Q4_0"), ["false", "true"]],
  ["Q8_0", mixture("Q8_0", "Q8_0"), ["false"]],
  ["Q4_K_M", mixture("Q4_K", "Q6_K"), ["false"]],
  ["Q5_K_M", mixture("Q5_K", "Q6_K"), ["false"]],
  ["F16", mixture("F16", "F16"), ["false"]],
  [RARE_TYPES.join(", "), inTurns(RARE_TYPES), ["false"]],
] as const)("with %s weights", (name, typeOf, flashAttention) => {
  test("log-probabilities and perplexity are the stock engine's", { timeout: 180_000 }, async () => {
    const file = path.join(folder, `${name}.gguf`);
    makeQuantised(SHIPPED_MODEL, file, "F16", typeOf);
    const [stock, stockFlash, ...ours] = await Promise.all([
      measure(startStockEngine, file, "false"),
      measure(startStockEngine, file, "true"),
      ...flashAttention.map(async (setting) => await measure(startEngine, file, setting)),
    ]);
    expect(stockFlash.length).toBeGreaterThanOrEqual(POSITIONS);
    const own = compareLogprobs(stock, stockFlash);
    for (const each of ours) {
      const difference = compareLogprobs(stock, each);
      expect(difference.mean).toBeLessThan(own.mean * MEAN_FACTOR);
      expect(difference.max).toBeLessThan(own.max * MAX_FACTOR);
      expect(Math.abs(perplexity(each) / perplexity(stock) - 1)).toBeLessThan(PERPLEXITY_TOLERANCE);
    }
  });
});
