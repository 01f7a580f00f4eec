import { z } from "zod";

/** Seeds are 32 bits wide. */
const UINT32_MAX = 0xffffffff;
/** Upper bound for token counts, larger than any context. */
const MAX_TOKEN_COUNT = 1_000_000;
/** Upper bound for settings that llama.cpp does not limit; larger than any useful value. */
const GENEROUS_LIMIT = 100;
/** Upper bound for durations, longer than any answer takes. */
const MAX_DURATION_MS = 24 * 60 * 60 * 1000;
/** Limited because llama.cpp searches the vocabulary for each breaker before the first token. */
export const MAX_DRY_BREAKERS = 16;
/** llama.cpp cuts longer breakers, in bytes. */
export const MAX_DRY_BREAKER_LENGTH = 40;

/** llama.cpp's samplers, and the letter of each in the string form of `samplers`. */
export const SAMPLERS = {
  penalties: "e",
  dry: "d",
  top_n_sigma: "s",
  top_k: "k",
  typ_p: "y",
  top_p: "p",
  min_p: "m",
  xtc: "x",
  temperature: "t",
  infill: "i",
  adaptive_p: "a",
} as const;
type SamplerName = keyof typeof SAMPLERS;
// The names come from the object's own type.
// oxlint-disable-next-line typescript/no-unsafe-type-assertion
export const SAMPLER_NAMES = Object.keys(SAMPLERS) as [SamplerName, ...SamplerName[]];

/** Maximum tokens of one draft (speculative decoding): the end of a longer draft is rarely accepted. */
export const MAX_DRAFT_TOKENS = 64;

interface SamplingField {
  /** Name in llama.cpp's server, in requests and as a PARAMETER of a Modelfile. */
  readonly name: string;
  /** Other names in requests. */
  readonly aliases?: readonly string[];
  /** Range that the engine accepts. */
  readonly type: z.ZodType;
  /** Default of all APIs, unless the request or the model sets a value; absent: llama.cpp's default. */
  readonly default?: number;
  readonly description: string;
  /** A Modelfile cannot set it. */
  readonly isForRequests?: true;
  /** Number of recent tokens to consider; -1: the entire context. */
  readonly isWindow?: true;
}

/**
 * All sampling settings, in the order of the documentation. The engine's schema, the fields of requests, the PARAMETERs
 * of Modelfiles and the tables of the documentation are generated from this object.
 */
export const SAMPLING_FIELDS = {
  temperature: {
    name: "temperature",
    type: z.number().min(0).max(GENEROUS_LIMIT),
    default: 0.7,
    description: "Sampling temperature; 0 always picks the most likely token.",
  },
  topP: {
    name: "top_p",
    type: z.number().min(0).max(1),
    default: 0.9,
    description: "Nucleus sampling.",
  },
  topK: {
    name: "top_k",
    type: z.int().min(0).max(MAX_TOKEN_COUNT),
    default: 40,
    description: "Top-k sampling; 0 and -1 disable it.",
  },
  minP: {
    name: "min_p",
    type: z.number().min(0).max(1),
    description: "Minimum token probability, relative to the most likely token.",
  },
  typicalP: {
    name: "typical_p",
    type: z.number().min(0).max(1),
    description: "Locally typical sampling; 1 disables it.",
  },
  topNSigma: {
    name: "top_n_sigma",
    type: z.number().min(-1).max(GENEROUS_LIMIT),
    description:
      "Keep tokens within so many standard deviations of the highest logit; 0 or less disables it.",
  },
  repeatPenalty: {
    name: "repeat_penalty",
    aliases: ["repetition_penalty"],
    // llama.cpp divides by it.
    type: z.number().gt(0).max(10),
    description: "Penalty for repeated tokens; 1 disables it.",
  },
  repeatLastN: {
    name: "repeat_last_n",
    type: z.int().min(-1).max(MAX_TOKEN_COUNT),
    description: "Number of recent tokens to which repeat_penalty applies; -1: the entire context.",
    isWindow: true,
  },
  presencePenalty: {
    name: "presence_penalty",
    type: z.number().min(-2).max(2),
    description: "Penalty for tokens that have already occurred.",
  },
  frequencyPenalty: {
    name: "frequency_penalty",
    type: z.number().min(-2).max(2),
    description: "Penalty that grows with how often a token has occurred.",
  },
  dryMultiplier: {
    name: "dry_multiplier",
    type: z.number().min(0).max(GENEROUS_LIMIT),
    description: "Strength of the DRY penalty for repeated sequences; 0 disables it.",
  },
  dryBase: {
    name: "dry_base",
    type: z.number().min(1).max(GENEROUS_LIMIT),
    description: "Base of the DRY penalty, which grows with the length of the repetition.",
  },
  dryAllowedLength: {
    name: "dry_allowed_length",
    type: z.int().min(0).max(MAX_TOKEN_COUNT),
    description: "Tokens that may repeat before the DRY penalty begins.",
  },
  dryPenaltyLastN: {
    name: "dry_penalty_last_n",
    type: z.int().min(-1).max(MAX_TOKEN_COUNT),
    description: "Number of recent tokens to which the DRY penalty applies; -1: the entire context.",
    isWindow: true,
  },
  drySequenceBreakers: {
    name: "dry_sequence_breakers",
    type: z.array(z.string().min(1).max(MAX_DRY_BREAKER_LENGTH)).min(1).max(MAX_DRY_BREAKERS),
    description: `Texts at which a repetition ends for the DRY penalty, at most ${MAX_DRY_BREAKERS}.`,
    isForRequests: true,
  },
  xtcProbability: {
    name: "xtc_probability",
    type: z.number().min(0).max(1),
    description: "Chance that XTC removes the most likely tokens; 0 disables it.",
  },
  xtcThreshold: {
    name: "xtc_threshold",
    type: z.number().min(0).max(1),
    description: "Probability from which XTC removes tokens; more than 0.5 disables it.",
  },
  dynatempRange: {
    name: "dynatemp_range",
    type: z.number().min(0).max(GENEROUS_LIMIT),
    description: "Range of the dynamic temperature, which follows the entropy; 0 disables it.",
  },
  dynatempExponent: {
    name: "dynatemp_exponent",
    type: z.number().min(0).max(GENEROUS_LIMIT),
    description: "Exponent of the dynamic temperature.",
  },
  mirostat: {
    name: "mirostat",
    type: z.int().min(0).max(2),
    description: "Mirostat sampling: 0 (off), 1 or 2.",
  },
  mirostatTau: {
    name: "mirostat_tau",
    type: z.number().min(0).max(GENEROUS_LIMIT),
    description: "Mirostat target entropy.",
  },
  mirostatEta: {
    name: "mirostat_eta",
    type: z.number().min(0).max(GENEROUS_LIMIT),
    description: "Mirostat learning rate.",
  },
  adaptiveTarget: {
    name: "adaptive_target",
    type: z.number().min(-1).max(1),
    description: "Target probability of the sampler adaptive_p, if it is among the samplers; below 0: off.",
    isForRequests: true,
  },
  adaptiveDecay: {
    name: "adaptive_decay",
    type: z.number().min(0).max(0.99),
    description: "Decay of the average that adaptive_p adapts to: lower values react faster.",
    isForRequests: true,
  },
  minKeep: {
    name: "min_keep",
    type: z.int().min(0).max(MAX_TOKEN_COUNT),
    description: "Minimum number of tokens that the samplers keep.",
  },
  samplers: {
    name: "samplers",
    type: z.array(z.enum(SAMPLER_NAMES)).max(SAMPLER_NAMES.length),
    description: `Samplers to apply, in order, by their names or as a string of letters: ${Object.entries(
      SAMPLERS,
    )
      .map(([name, letter]) => `${name} (${letter})`)
      .join(", ")}.`,
    isForRequests: true,
  },
  seed: {
    name: "seed",
    type: z.int().min(0).max(UINT32_MAX),
    description: "Sampling seed. Default, and -1: a new one for each request.",
  },
  logitBias: {
    name: "logit_bias",
    type: z.array(z.object({ token: z.int().min(0), bias: z.number().min(-100).max(100) })),
    description: "Bias by token ID, -100 to 100: an object, or pairs of ID and bias. false: -100.",
    isForRequests: true,
  },
  ignoreEos: {
    name: "ignore_eos",
    type: z.boolean(),
    description: "Continue after the end of the answer; for benchmarks.",
    isForRequests: true,
  },
  guessTokens: {
    name: "draft_max",
    aliases: ["speculative.n_max"],
    type: z.int().min(0).max(MAX_DRAFT_TOKENS),
    description:
      "Maximum tokens of a draft (speculative decoding), which affects only the speed of an answer; 0: no drafts. Default: as the model was loaded.",
  },
  maxPredictMs: {
    name: "t_max_predict_ms",
    type: z.int().min(0).max(MAX_DURATION_MS),
    description: "Milliseconds after which an answer that has a line end is cut off; 0: none.",
  },
  minIndent: {
    name: "n_indent",
    type: z.int().min(0).max(MAX_TOKEN_COUNT),
    description: "End the answer at a line with less indentation, in characters; 0: off.",
  },
} as const satisfies Record<string, SamplingField>;

export type SamplingFields = typeof SAMPLING_FIELDS;
export type SamplingKey = keyof SamplingFields;

type SamplingShape = { -readonly [Key in SamplingKey]: z.ZodOptional<SamplingFields[Key]["type"]> };

/** Shape of the schema of sampling settings, all of which are optional. */
// Keys and types are those of SAMPLING_FIELDS.
// oxlint-disable-next-line typescript/no-unsafe-type-assertion
export const samplingShape = Object.fromEntries(
  Object.entries(SAMPLING_FIELDS).map(([key, { type }]) => [key, type.optional()]),
) as unknown as SamplingShape;

export const SAMPLING_ENTRIES: readonly (readonly [SamplingKey, SamplingField])[] =
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- as above
  Object.entries(SAMPLING_FIELDS) as [SamplingKey, SamplingField][];
