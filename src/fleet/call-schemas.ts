import { z } from "zod";
import { tokenIdsSchema, tokenizeOptionsSchema } from "../engine/protocol/calls.ts";
import {
  answerLimitSchema,
  doneEventSchema,
  generationEventSchema,
  generationInputSchema,
  prefixTokensSchema,
  MAX_TOP_LOGPROBS,
  outputFormatSchema,
  samplingSchema,
  tokenLogprobSchema,
} from "../engine/protocol/generation.ts";
import { loadSettingsSchema } from "../config/load-settings.ts";
import { reportedErrorSchema } from "../engine/protocol/messages.ts";
import type { InferenceEvent } from "../inference/inference.ts";
import { machineIdSchema, PROTOCOL } from "./members.ts";

/** Calls and reports between machines. Every NATS client may send them, so both sides validate them. */

const text = z.string();
const count = z.int().min(0);

const residencySchema = z.object({
  contextSize: count.optional(),
  gpuLayers: z.int().optional(),
  load: loadSettingsSchema.optional(),
  // Infinity means never unloaded.
  keepAliveMs: z.union([z.number().min(0), z.literal(Number.POSITIVE_INFINITY)]).optional(),
});

const common = { residency: residencySchema.optional() };

const inputSchema = z.union([
  generationInputSchema,
  z.object({
    kind: z.literal("infill"),
    prefix: text,
    suffix: text,
    extra: z.array(z.object({ filename: text, text })).optional(),
    middle: text.optional(),
  }),
  z.object({
    kind: z.literal("instruct"),
    prompt: text,
    system: text.optional(),
    images: z.array(z.instanceof(Uint8Array)),
    thinking: z.boolean().optional(),
    templateVariables: z.record(z.string(), z.unknown()).optional(),
  }),
]);

/** InferenceRequest without the fields that apply only to the machine where it arrived. */
const generateSchema = z.object({
  ...common,
  endpoint: z.enum(["chat", "generate", "embeddings"]),
  input: inputSchema,
  maxTokens: z.int().min(1).optional(),
  reasoningBudget: count.optional(),
  stop: z.array(text).optional(),
  sampling: samplingSchema,
  format: outputFormatSchema,
  logprobs: z.int().min(0).max(MAX_TOP_LOGPROBS).optional(),
  emptyTokens: z.boolean().optional(),
  /** Send log-probabilities of each generated token. */
  wantsTokens: z.boolean(),
  /** Send the ids of the answer's tokens; absent from older callers. */
  wantsChosen: z.boolean().optional(),
  /** Tokens that the answer begins with. Older machines ignore them and usually generate the same ones. */
  given: prefixTokensSchema.optional(),
  /** Number of earlier answers that did not fit; absent from older callers. */
  failedTries: count.optional(),
  cachePrompt: z.boolean().optional(),
  cacheReuse: count.optional(),
  shift: z.object({ keep: z.int().optional(), discard: z.int().optional() }).optional(),
  adapters: z.array(z.object({ id: count.optional(), name: text.optional(), scale: z.number() })).optional(),
  details: z.boolean().optional(),
  timings: z.boolean().optional(),
  repetitionGuard: z.boolean().optional(),
  warnings: z.array(text).optional(),
  defaults: z.object({ maxTokens: z.int().min(1).optional(), sampling: samplingSchema }),
});
export type GenerateCall = z.infer<typeof generateSchema>;

const detokenizeSchema = z.object({
  ...common,
  tokens: z.union([tokenIdsSchema, z.array(z.number())]),
});

/** Requests and answers of all calls other than generations. */
export const SHORT_CALLS = {
  embed: {
    request: z.object({ ...common, input: z.array(text), truncate: z.boolean().optional() }),
    answer: z.object({
      model: text,
      vectors: z.array(z.array(z.number())),
      totalTokens: count,
      loadMs: z.number(),
    }),
  },
  rerank: {
    request: z.object({ ...common, query: text, documents: z.array(text) }),
    answer: z.object({ model: text, scores: z.array(z.number()), totalTokens: count }),
  },
  score: {
    request: z.object({
      ...common,
      prompts: z.array(z.union([text, z.array(z.number())])),
      logprobs: count.optional(),
    }),
    answer: z.object({
      model: text,
      prompts: z.array(
        z.object({
          shown: z.array(
            z
              .object({
                id: z.int(),
                bytes: z.instanceof(Uint8Array),
                score: tokenLogprobSchema.optional(),
              })
              .transform(({ id, bytes, score }) => ({ id, bytes, score })),
          ),
          tokens: count,
        }),
      ),
    }),
  },
  tokenize: {
    request: z.object({ ...common, text, options: tokenizeOptionsSchema }),
    answer: tokenIdsSchema,
  },
  pieces: {
    request: detokenizeSchema,
    answer: z.array(z.object({ id: z.int(), bytes: z.instanceof(Uint8Array) })),
  },
  detokenize: { request: detokenizeSchema, answer: text },
  promptFromTokens: { request: detokenizeSchema.extend({ param: text }), answer: text },
} as const;
export type ShortCall = keyof typeof SHORT_CALLS;

export const requestSchema = z.discriminatedUnion("op", [
  z.object({ op: z.literal("generate"), request: generateSchema }),
  z.object({ op: z.literal("embed"), request: SHORT_CALLS.embed.request }),
  z.object({ op: z.literal("rerank"), request: SHORT_CALLS.rerank.request }),
  z.object({ op: z.literal("score"), request: SHORT_CALLS.score.request }),
  z.object({ op: z.literal("tokenize"), request: SHORT_CALLS.tokenize.request }),
  z.object({ op: z.literal("pieces"), request: SHORT_CALLS.pieces.request }),
  z.object({ op: z.literal("detokenize"), request: SHORT_CALLS.detokenize.request }),
  z.object({ op: z.literal("promptFromTokens"), request: SHORT_CALLS.promptFromTokens.request }),
]);
export type CallRequest = z.infer<typeof requestSchema>;

/** Offer of a call, which a machine accepts only if it can begin at once. */
export const offerSchema = z.object({
  protocol: z.literal(PROTOCOL),
  /** Id of the caller. */
  entrance: machineIdSchema,
  /** Identity of the model, and its name on the called machine, with an adapter if one is requested. */
  files: text,
  settings: text,
  name: text,
  /** True if the call must begin at once or be declined; false for calls that need no slot. */
  needsSlot: z.boolean(),
  /** Bytes of the request, which follows if it does not fit into the offer. */
  bytes: count,
});
export type Offer = z.infer<typeof offerSchema>;

const answerDoneSchema = doneEventSchema.extend({
  totalMs: z.number(),
  tokensPerSecond: z.number(),
  limitedBy: answerLimitSchema.optional(),
});

/** Events other than those for the client are reported in other ways. */
const eventSchema = z.custom<InferenceEvent>((value) => {
  const type = typeof value === "object" && value !== null ? String(Reflect.get(value, "type")) : "";
  if (type === "answer-progress" || type === "tokens") return false;
  return (type === "done" ? answerDoneSchema : generationEventSchema).safeParse(value).success;
});

/** Reports to the caller. For a generation: begun, then events; for other calls one answer. */
export const reportSchema = z.discriminatedUnion("type", [
  z.object({
    type: z.literal("begun"),
    loadMs: z.number().min(0),
    sampling: samplingSchema,
    warnings: z.array(text),
  }),
  z.object({
    type: z.literal("events"),
    events: z.array(eventSchema),
    tokens: z.array(tokenLogprobSchema).optional(),
    chosen: z.object({ ids: prefixTokensSchema, replaced: count, failedTries: count.optional() }).optional(),
  }),
  z.object({ type: z.literal("answer"), answer: z.unknown() }),
  /** Refusal to begin: the caller asks another machine. */
  z.object({ type: z.literal("declined"), error: reportedErrorSchema }),
  z.object({ type: z.literal("failed"), error: reportedErrorSchema }),
]);
export type Report = z.infer<typeof reportSchema>;
