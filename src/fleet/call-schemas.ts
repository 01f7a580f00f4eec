import { z } from "zod";
import { tokenIdsSchema, tokenizeOptionsSchema } from "../engine/protocol/calls.ts";
import {
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
import { answerLimitSchema, type InferenceEvent } from "../inference/inference.ts";
import { idSchema, PROTOCOL } from "./members.ts";

/** What machines ask each other and answer. Anyone on the NATS server may have written it, so each side checks it. */

const text = z.string();
const count = z.int().min(0);

const residencySchema = z.object({
  contextSize: count.optional(),
  gpuLayers: z.int().optional(),
  load: loadSettingsSchema.optional(),
  // Infinity: never unloaded.
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

/** An InferenceRequest, without what only makes sense where it arrived. */
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
  /** Also send each token as it is generated. */
  wantsTokens: z.boolean(),
  /** Also tell the tokens of the answer by their number; absent: the one who asks does not know of it. */
  wantsChosen: z.boolean().optional(),
  /** What the answer begins with. A machine that does not know of it says the same tokens itself, as a rule. */
  given: prefixTokensSchema.optional(),
  /** Answers before it that did not fit; absent: the one who asks does not know of them. */
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

/** The calls other than generations: what is asked, and what is answered. */
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

/** The offer of a call: a machine accepts it only if it can begin at once. */
export const offerSchema = z.object({
  protocol: z.literal(PROTOCOL),
  /** Who asks. */
  entrance: idSchema,
  /** The model, by what identifies it, and by its name on the machine that is asked, perhaps with an adapter. */
  files: text,
  settings: text,
  name: text,
  /** Whether it has to begin at once or not at all, as what needs no slot always can. */
  needsSlot: z.boolean(),
  /** Bytes of the request, which follow when they do not fit into the offer. */
  bytes: count,
});
export type Offer = z.infer<typeof offerSchema>;

const answerDoneSchema = doneEventSchema.extend({
  totalMs: z.number(),
  tokensPerSecond: z.number(),
  limitedBy: answerLimitSchema.optional(),
});

/** Those that are not for the reader of an answer are told in other ways. */
const eventSchema = z.custom<InferenceEvent>((value) => {
  const type = typeof value === "object" && value !== null ? String(Reflect.get(value, "type")) : "";
  if (type === "answer-progress" || type === "tokens") return false;
  return (type === "done" ? answerDoneSchema : generationEventSchema).safeParse(value).success;
});

/** What a machine tells the one who asked. A generation: begun, any number of events; anything else: one answer. */
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
  /** It refuses to begin: the reason for another machine to be asked. */
  z.object({ type: z.literal("declined"), error: reportedErrorSchema }),
  z.object({ type: z.literal("failed"), error: reportedErrorSchema }),
]);
export type Report = z.infer<typeof reportSchema>;
