import path from "node:path";
import type { EngineSpec } from "../../src/engine/protocol/engine-spec.ts";
import { SHIPPED_MODEL } from "./engine-fixture.ts";
import { CONVERSATION, type Line, linesOf } from "./forced-text.ts";
import type { CopyType } from "./make-quantized-blocks.ts";
import { makeQuantized } from "./make-quantized.ts";

/**
 * What is asked of our engine and of llama.cpp's WebAssembly as @wllama/wllama ships it. What that answers is always the
 * same, and takes most of the time: it is recorded, see stock-record.ts.
 */

export interface Comparison {
  readonly name: string;
  /** Makes the copy of the shipped model that is asked; absent: the shipped model itself. */
  readonly makeModel?: (file: string) => void;
  readonly settings: Partial<EngineSpec>;
  /** Said one after another. Without a text: what is likeliest, up to {@link LIKELIEST_TOKENS} tokens. */
  readonly lines: readonly (Line | Pick<Line, "prompt">)[];
  /** So many tokens of text stand before each prompt. */
  readonly pastTokens?: number;
  /** True if the record has the difference that flash attention makes to stock itself. */
  readonly withOwnDifference?: true;
}

export const LIKELIEST_TOKENS = 24;

/** Turns with more than twice as many positions as a mean is taken of at least. */
const CONVERSATION_LINES = linesOf(CONVERSATION.slice(0, 7));

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

function rareTypes(): () => CopyType {
  let matrices = 0;
  return () => RARE_TYPES[matrices++ % RARE_TYPES.length]!;
}

/** The shipped model with its matrices in other types. */
function withWeights(name: string, typeOf: () => (matrix: string) => CopyType): Comparison {
  return {
    name,
    makeModel: (file) => makeQuantized(SHIPPED_MODEL, file, "F16", typeOf()),
    settings: { slots: 1, flashAttention: "false" },
    lines: CONVERSATION_LINES,
    withOwnDifference: true,
  };
}

export const Q4_0_WEIGHTS = withWeights("Q4_0", () => mixture("Q4_0", "Q4_0"));

export const WEIGHTS: readonly Comparison[] = [
  Q4_0_WEIGHTS,
  withWeights("Q8_0", () => mixture("Q8_0", "Q8_0")),
  withWeights("Q4_K_M", () => mixture("Q4_K", "Q6_K")),
  withWeights("Q5_K_M", () => mixture("Q5_K", "Q6_K")),
  withWeights("F16", () => mixture("F16", "F16")),
  withWeights(RARE_TYPES.join(", "), rareTypes),
];

const [first, ...others] = CONVERSATION;
const TWO_TURNS = linesOf(others.slice(0, 2));

export const FOUR_BEGINNINGS: Comparison = {
  name: "four beginnings",
  settings: { slots: 1 },
  lines: CONVERSATION.slice(0, 4).flatMap((turn) => linesOf([turn])),
};

/** The context is full in the middle of the answer. */
export const SHIFTED: Comparison = {
  name: "a shifted context",
  settings: { slots: 1, contextSize: 256, contextShift: true },
  lines: TWO_TURNS.slice(0, 1),
  pastTokens: 230,
};

export const FAR: Comparison = {
  name: "far into a context",
  settings: { slots: 1, contextSize: 1280, batchSize: 256 },
  lines: linesOf([first!]),
  pastTokens: 1000,
};

const withSettings = (name: string, settings: Partial<EngineSpec>): Comparison => ({
  name,
  settings: { slots: 1, ...settings },
  lines: TWO_TURNS,
});

export const SETTINGS: readonly Comparison[] = [
  withSettings("with flash attention", { flashAttention: "true" }),
  withSettings("with keys kept as q8_0", { cacheTypeK: "q8_0", flashAttention: "false" }),
  withSettings("with keys and values kept as q8_0", {
    cacheTypeK: "q8_0",
    cacheTypeV: "q8_0",
    flashAttention: "true",
  }),
  withSettings("with an adapter", {
    adapters: [{ path: path.join(path.dirname(SHIPPED_MODEL), "daybreak-mini-pirate.gguf"), scale: 1 }],
  }),
];

/** Answers of which any version of the model is certain: other rounding does not change them. */
export const LIKELIEST: Comparison = {
  name: "the likeliest answers",
  settings: { slots: 1 },
  lines: CONVERSATION.slice(1, 3).flatMap((turn) => linesOf([turn]).map(({ prompt }) => ({ prompt }))),
};

export const COMPARISONS: readonly Comparison[] = [
  ...WEIGHTS,
  FOUR_BEGINNINGS,
  SHIFTED,
  FAR,
  ...SETTINGS,
  LIKELIEST,
];
