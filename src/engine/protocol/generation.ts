import { z } from "zod";
import { samplingShape } from "./sampling-fields.ts";

/**
 * Generation requests and the events of their answers, independent of any HTTP API. The daemon and the engine both
 * validate with these schemas.
 */

const textPartSchema = z.object({ type: z.literal("text"), text: z.string() });

const imagePartSchema = z.object({
  type: z.literal("image"),
  /** The encoded image as it was received: PNG, JPEG, BMP, GIF or WebP. */
  data: z.instanceof(Uint8Array),
});

const audioPartSchema = z.object({
  type: z.literal("audio"),
  /** A WAV, MP3 or FLAC file that readAudio() has checked. */
  data: z.instanceof(Uint8Array),
});

const contentPartSchema = z.discriminatedUnion("type", [textPartSchema, imagePartSchema, audioPartSchema]);
export type ContentPart = z.infer<typeof contentPartSchema>;
/** An image or a recording, which the projector turns into tokens. */
export type MediaPart = Exclude<ContentPart, { type: "text" }>;

const toolCallSchema = z.object({
  id: z.string(),
  name: z.string(),
  /** The arguments as JSON text, exactly as the model wrote them. */
  arguments: z.string(),
});
export type ToolCall = z.infer<typeof toolCallSchema>;

const chatMessageSchema = z.object({
  role: z.enum(["system", "user", "assistant", "tool"]),
  content: z.array(contentPartSchema),
  /** Reasoning of an earlier assistant message, for chat templates that include it. */
  reasoning: z.string().optional(),
  toolCalls: z.array(toolCallSchema).optional(),
  /** For role tool: the call this message answers. */
  toolCallId: z.string().optional(),
  name: z.string().optional(),
});
export type ChatMessage = z.infer<typeof chatMessageSchema>;

export const jsonSchemaSchema = z.record(z.string(), z.unknown());
export type JsonSchema = z.infer<typeof jsonSchemaSchema>;

const toolDefinitionSchema = z.object({
  name: z.string(),
  description: z.string().optional(),
  parameters: jsonSchemaSchema.optional(),
  /** Reject a schema that cannot be enforced completely, instead of enforcing a part of it. */
  strict: z.boolean().optional(),
  /** Field of the API request that contains the parameters, for error messages; absent: tools. */
  param: z.string().optional(),
});
export type ToolDefinition = z.infer<typeof toolDefinitionSchema>;

const toolChoiceSchema = z.union([z.enum(["auto", "none", "required"]), z.object({ name: z.string() })]);
export type ToolChoice = z.infer<typeof toolChoiceSchema>;

export const outputFormatSchema = z.discriminatedUnion("type", [
  z.object({ type: z.literal("text") }),
  z.object({ type: z.literal("json") }),
  z.object({
    type: z.literal("json_schema"),
    schema: jsonSchemaSchema,
    /** Reject a schema that cannot be enforced completely, instead of enforcing a part of it. */
    strict: z.boolean().optional(),
    /** Field of the API request that contains the schema, for error messages; absent: format. */
    param: z.string().optional(),
  }),
  /** A grammar in llama.cpp's GBNF. */
  z.object({
    type: z.literal("grammar"),
    grammar: z.string(),
    /** Field of the API request that contains the grammar, for error messages; absent: grammar. */
    param: z.string().optional(),
    /** True if the grammar allows only JSON. */
    isJson: z.boolean().optional(),
  }),
]);
export type OutputFormat = z.infer<typeof outputFormatSchema>;

export const generationInputSchema = z.discriminatedUnion("kind", [
  /** Text that is passed to the model without the chat template. */
  z.object({ kind: z.literal("prompt"), prompt: z.string() }),
  z.object({
    kind: z.literal("chat"),
    messages: z.array(chatMessageSchema).min(1),
    /**
     * False: if the conversation ends with an assistant message, the answer is a new message. Absent: the answer
     * continues that message.
     */
    continueLast: z.boolean().optional(),
    tools: z.array(toolDefinitionSchema),
    toolChoice: toolChoiceSchema,
    /** False: at most one tool call per answer. */
    parallelToolCalls: z.boolean(),
    /** Passed to the template as enable_thinking; absent: the template's default. */
    thinking: z.boolean().optional(),
    /** Other variables for the template, such as reasoning_effort. */
    templateVariables: z.record(z.string(), z.unknown()).optional(),
  }),
]);
export type GenerationInput = z.infer<typeof generationInputSchema>;
type ChatInput = Extract<GenerationInput, { kind: "chat" }>;

/** True if the answer continues the last message of the conversation instead of starting a new one. */
export function continuesLast({ messages, continueLast }: ChatInput): boolean {
  const last = messages.at(-1);
  return continueLast !== false && last?.role === "assistant" && !last.toolCalls?.length;
}

/** Sampling settings in the ranges that the engine accepts. Absent: the engine's default. */
export const samplingSchema = z.object(samplingShape);
export type Sampling = z.infer<typeof samplingSchema>;

/** Maximum alternatives per position in `logprobs`. */
export const MAX_TOP_LOGPROBS = 20;

/** Every adapter makes every matrix multiplication slower; more than this many is not useful. */
export const MAX_ADAPTERS = 16;
/** At scale 1 an adapter has the effect for which it was trained. */
export const MAX_ADAPTER_SCALE = 10;
/** Scale of each loaded LoRA adapter, in order. */
export const adapterScalesSchema = z
  .array(z.number().min(-MAX_ADAPTER_SCALE).max(MAX_ADAPTER_SCALE))
  .max(MAX_ADAPTERS);

/** Upper bound for token counts in requests, larger than any context. */
export const MAX_SHIFTED_TOKENS = 16 * 1024 * 1024;

/** Larger than any answer; bounds the size of messages. */
export const MAX_PREFIX_TOKENS = 1024 * 1024;
export const prefixTokensSchema = z.array(z.int().min(0)).max(MAX_PREFIX_TOKENS);

export const generationRequestSchema = z.object({
  input: generationInputSchema,
  /** Maximum number of tokens to generate; absent: until the context is full. */
  maxTokens: z.int().min(1).optional(),
  stop: z.array(z.string().min(1)),
  sampling: samplingSchema,
  format: outputFormatSchema,
  /** Number of alternatives to report per position; 0: only the sampled token; absent: no log probabilities. */
  logprobs: z.int().min(0).max(MAX_TOP_LOGPROBS).optional(),
  /** Limit of reasoning in a chat; absent: unlimited. */
  reasoning: z
    .object({
      /** Maximum tokens of reasoning. */
      budget: z.int().min(0).max(MAX_SHIFTED_TOKENS),
      /** Tags around reasoning, used if llama.cpp does not find any in the chat template. */
      tags: z.object({ start: z.string(), end: z.string().min(1) }).optional(),
    })
    .optional(),
  /** Context shift, which makes space in a full context; absent: as the model was loaded. */
  shift: z
    .object({
      /** Number of tokens at the start of the context that are never dropped; -1: the whole prompt. */
      keep: z.int().min(-1).max(MAX_SHIFTED_TOKENS).optional(),
      /** Number of tokens to drop; 0: half of the tokens that may be dropped. */
      discard: z.int().min(0).max(MAX_SHIFTED_TOKENS).optional(),
    })
    .optional(),
  /** Scales of the model's LoRA adapters, in order; absent: as the model was loaded. */
  adapterScales: adapterScalesSchema.optional(),
  /** Reuse the part of the prompt that is in the KV cache. */
  cachePrompt: z.boolean(),
  /**
   * Minimum length in tokens of a prompt part that is reused from the KV cache at another position; 0: none is reused;
   * absent: as the model was loaded.
   */
  cacheReuse: z.int().min(0).max(MAX_SHIFTED_TOKENS).optional(),
  /** Preferred slot, from 0, used if it is idle; absent: any slot. */
  slot: z.int().min(0).optional(),
  /** Include {@link GenerationDetails} in the last event. */
  details: z.boolean().optional(),
  /** Include usage and timings so far in each delta of the answer. */
  timings: z.boolean().optional(),
  /**
   * Tokens that the answer begins with, generated by another engine before it failed. They are part of the answer;
   * sampling, grammar and text continue after them. An engine with the stock kernels ignores them and generates its
   * own.
   */
  given: prefixTokensSchema.optional(),
  /** Report the token IDs of the answer. Only engines with Daybreak's kernels can. */
  reportsTokens: z.boolean().optional(),
});
export type GenerationRequest = z.infer<typeof generationRequestSchema>;

const plainLogprobSchema = z.object({
  /** ID of the token in the model's vocabulary. */
  id: z.int(),
  token: z.string(),
  /** Natural logarithm of the probability. */
  logprob: z.number(),
  bytes: z.array(z.int()).nullable(),
});
export const tokenLogprobSchema = plainLogprobSchema.extend({ top: z.array(plainLogprobSchema) });
export type TokenLogprob = z.infer<typeof tokenLogprobSchema>;

const usageSchema = z.object({
  promptTokens: z.int().min(0),
  completionTokens: z.int().min(0),
  /** Prompt tokens that were found in the KV cache. */
  cachedTokens: z.int().min(0),
  /** Completion tokens spent on reasoning, if known. */
  reasoningTokens: z.int().min(0),
  /** Speculative decoding: drafted tokens, and how many the model accepted (`kept`); absent: no drafts. */
  guesses: z.object({ tokens: z.int().min(0), kept: z.int().min(0) }).optional(),
});
export type Usage = z.infer<typeof usageSchema>;

/** Number of tokens between two `answer-progress` events. */
export const ANSWER_PROGRESS_TOKENS = 16;

const timingsSchema = z.object({
  /** Milliseconds spent on the prompt (prefill). */
  promptMs: z.number().min(0),
  /** Milliseconds spent on generating (decode). */
  completionMs: z.number().min(0),
});
export type Timings = z.infer<typeof timingsSchema>;

const figuresSchema = z.object({ usage: usageSchema, timings: timingsSchema });
/** Token counts and durations up to a position in an answer. */
export type Figures = z.infer<typeof figuresSchema>;

/** Only if the request asks for timings. */
const soFar = figuresSchema.optional();

/** Offset at which the text of each token ends, if the texts of several tokens were joined into one event. */
const ends = z.array(z.int().min(0)).optional();

const detailsSchema = z.object({
  /** Prompt that the model has read, including special tokens. */
  prompt: z.string(),
  slot: z.int().min(0),
  /** Number of tokens in the KV cache of the slot after the answer. */
  tokensInCache: z.int().min(0),
  /** True if the context was full before the answer ended. */
  truncated: z.boolean(),
});
export type GenerationDetails = z.infer<typeof detailsSchema>;

export const finishReasonSchema = z.enum(["stop", "length", "tool_calls"]);
export type FinishReason = z.infer<typeof finishReasonSchema>;

/** Limit that truncated an answer. */
export const answerLimitSchema = z.enum([
  "max_tokens",
  "num_predict",
  "default",
  "context",
  "repetition",
  "time",
  "indentation",
]);
export type AnswerLimit = z.infer<typeof answerLimitSchema>;

export const doneEventSchema = z.object({
  type: z.literal("done"),
  reason: finishReasonSchema,
  /** Stop string that ended the answer. */
  stopSequence: z.string().optional(),
  ...figuresSchema.shape,
  /** Only if the request asks for details. */
  details: detailsSchema.optional(),
});

/**
 * One event of a generation. A stream is one `start`, any number of deltas, and one `done`. Errors are thrown and end
 * the stream. A tool call is one `tool-call-start` with its index, then `tool-call-delta`s with parts of the JSON
 * arguments.
 */
export const generationEventSchema = z.discriminatedUnion("type", [
  z.object({ type: z.literal("start") }),
  z.object({
    type: z.literal("prompt-progress"),
    processed: z.int().min(0),
    total: z.int().min(0),
    /** Those of the processed tokens that were found in the KV cache. */
    cached: z.int().min(0).optional(),
    /** Milliseconds since the engine started to process the prompt. */
    elapsedMs: z.number().min(0).optional(),
  }),
  z.object({
    type: z.literal("text-delta"),
    text: z.string(),
    logprobs: z.array(tokenLogprobSchema).optional(),
    ends,
    soFar,
  }),
  z.object({ type: z.literal("reasoning-delta"), text: z.string(), ends, soFar }),
  z.object({
    type: z.literal("tool-call-start"),
    index: z.int().min(0),
    id: z.string(),
    name: z.string(),
    /** Figures up to the start of this call, for requests that allow only one call. */
    soFar,
  }),
  z.object({ type: z.literal("tool-call-delta"), index: z.int().min(0), arguments: z.string(), ends, soFar }),
  /**
   * Only in a shared context, every {@link ANSWER_PROGRESS_TOKENS} tokens: usage and timings so far, including tokens
   * that have no text or whose text is not complete yet.
   */
  z.object({ type: z.literal("answer-progress"), ...figuresSchema.shape }),
  /** Only if the request asks for tokens: the IDs of the next tokens, sent before their text. */
  z.object({
    type: z.literal("tokens"),
    ids: z.array(z.int().min(0)),
    /** Number of these that come from `given` and differ from the tokens that this engine would have generated. */
    replaced: z.int().min(0),
    /**
     * Number of complete answers that were discarded before this one because they had the wrong format; absent: none.
     */
    failedTries: z.int().min(0).optional(),
  }),
  doneEventSchema,
]);
export type GenerationEvent = z.infer<typeof generationEventSchema>;
