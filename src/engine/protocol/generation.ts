import { z } from "zod";
import { samplingShape } from "./sampling-fields.ts";

/**
 * What an engine is asked to generate and what it answers, independent of any wire format. Both sides of the process
 * boundary validate with these schemas.
 */

const textPartSchema = z.object({ type: z.literal("text"), text: z.string() });

const imagePartSchema = z.object({
  type: z.literal("image"),
  /** The encoded image as it was received: PNG, JPEG, BMP, GIF or WebP. */
  data: z.instanceof(Uint8Array),
});

const audioPartSchema = z.object({
  type: z.literal("audio"),
  /** A WAV, MP3 or FLAC file that has been checked: see readAudio(). */
  data: z.instanceof(Uint8Array),
});

const contentPartSchema = z.discriminatedUnion("type", [textPartSchema, imagePartSchema, audioPartSchema]);
export type ContentPart = z.infer<typeof contentPartSchema>;
/** What a projector turns into tokens. */
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
  /** Reasoning of an earlier assistant turn, for templates that keep it. */
  reasoning: z.string().optional(),
  toolCalls: z.array(toolCallSchema).optional(),
  /** For role tool: the call this message answers. */
  toolCallId: z.string().optional(),
  name: z.string().optional(),
});
export type ChatMessage = z.infer<typeof chatMessageSchema>;

export const jsonSchemaSchema = z.record(z.string(), z.unknown());
/** A JSON Schema document. */
export type JsonSchema = z.infer<typeof jsonSchemaSchema>;

const toolDefinitionSchema = z.object({
  name: z.string(),
  description: z.string().optional(),
  parameters: jsonSchemaSchema.optional(),
  /** Refuse a schema that cannot be kept, instead of keeping what can be. */
  strict: z.boolean().optional(),
  /** The field of the request that has the parameters; absent: tools. */
  param: z.string().optional(),
});
export type ToolDefinition = z.infer<typeof toolDefinitionSchema>;

const toolChoiceSchema = z.union([z.enum(["auto", "none", "required"]), z.object({ name: z.string() })]);
export type ToolChoice = z.infer<typeof toolChoiceSchema>;

export const outputFormatSchema = z.discriminatedUnion("type", [
  z.object({ type: z.literal("text") }),
  /** Any JSON object. */
  z.object({ type: z.literal("json") }),
  z.object({
    type: z.literal("json_schema"),
    schema: jsonSchemaSchema,
    /** Refuse a schema that cannot be kept, instead of keeping what can be. */
    strict: z.boolean().optional(),
    /** The field of the request that it comes from; absent: format. */
    param: z.string().optional(),
  }),
  /** A grammar in llama.cpp's GBNF. */
  z.object({
    type: z.literal("grammar"),
    grammar: z.string(),
    /** The field of the request that it comes from; absent: grammar. */
    param: z.string().optional(),
    /** All that it allows is JSON. */
    isJson: z.boolean().optional(),
  }),
]);
export type OutputFormat = z.infer<typeof outputFormatSchema>;

export const generationInputSchema = z.discriminatedUnion("kind", [
  /** Text for the model as it is, without the chat template. */
  z.object({ kind: z.literal("prompt"), prompt: z.string() }),
  z.object({
    kind: z.literal("chat"),
    messages: z.array(chatMessageSchema).min(1),
    /** False: the answer to a conversation that ends with an assistant message is a new message. Absent: it continues that one. */
    continueLast: z.boolean().optional(),
    tools: z.array(toolDefinitionSchema),
    toolChoice: toolChoiceSchema,
    /** When false, at most one call per turn. */
    parallelToolCalls: z.boolean(),
    /** Passed to the template as enable_thinking; absent: the template's default. */
    thinking: z.boolean().optional(),
    /** Other variables for the template, such as reasoning_effort. */
    templateVariables: z.record(z.string(), z.unknown()).optional(),
  }),
]);
export type GenerationInput = z.infer<typeof generationInputSchema>;
type ChatInput = Extract<GenerationInput, { kind: "chat" }>;

/** True if the answer continues the last message of the conversation, instead of being a message of its own. */
export function continuesLast({ messages, continueLast }: ChatInput): boolean {
  const last = messages.at(-1);
  return continueLast !== false && last?.role === "assistant" && !last.toolCalls?.length;
}

/** Sampling settings, in the ranges that the engine accepts. An absent one means the engine's default. */
export const samplingSchema = z.object(samplingShape);
export type Sampling = z.infer<typeof samplingSchema>;

/** Most alternatives per position that a request may ask for. */
export const MAX_TOP_LOGPROBS = 20;

/** More tokens than any context has. */
export const MAX_SHIFTED_TOKENS = 16 * 1024 * 1024;

/** Adapters cost time in every matrix multiplication; nobody stacks more. */
export const MAX_ADAPTERS = 16;
/** At 1 an adapter works as trained; a tenfold effect, even a negative one, is beyond any use. */
export const MAX_ADAPTER_SCALE = 10;

/** More tokens than any context has. */
const MAX_REASONING_TOKENS = 16 * 1024 * 1024;

/** More tokens than answers have; each takes room in messages. */
export const MAX_GIVEN_TOKENS = 1024 * 1024;
export const prefixTokensSchema = z.array(z.int().min(0)).max(MAX_GIVEN_TOKENS);

export const generationRequestSchema = z.object({
  input: generationInputSchema,
  /** Most tokens to generate; absent: until the context is full. */
  maxTokens: z.int().min(1).optional(),
  stop: z.array(z.string().min(1)),
  sampling: samplingSchema,
  format: outputFormatSchema,
  /** Alternatives to report per position; 0: only the chosen token; absent: no log probabilities. */
  logprobs: z.int().min(0).max(MAX_TOP_LOGPROBS).optional(),
  /** How long a chat may reason before it has to answer. Absent: as long as it likes. */
  reasoning: z
    .object({
      /** Tokens. */
      budget: z.int().min(0).max(MAX_REASONING_TOKENS),
      /** Around it, where the template does not say so. */
      tags: z.object({ start: z.string(), end: z.string().min(1) }).optional(),
    })
    .optional(),
  /** What a context that shifts does when it is full; absent: as the model was loaded. */
  shift: z
    .object({
      /** First tokens that stay; -1: the whole prompt. */
      keep: z.int().min(-1).max(MAX_SHIFTED_TOKENS).optional(),
      /** Tokens that are dropped; 0: half of the others. */
      discard: z.int().min(0).max(MAX_SHIFTED_TOKENS).optional(),
    })
    .optional(),
  /** Of the model's LoRA adapters, in order; absent: as they were loaded. */
  adapterScales: z
    .array(z.number().min(-MAX_ADAPTER_SCALE).max(MAX_ADAPTER_SCALE))
    .max(MAX_ADAPTERS)
    .optional(),
  /** Reuse the part of the prompt that is in the KV cache. */
  cachePrompt: z.boolean(),
  /** Least tokens of a part of the prompt that is reused although it has moved; 0: none is; absent: as the model was loaded. */
  cacheReuse: z.int().min(0).max(MAX_SHIFTED_TOKENS).optional(),
  /** The slot that answers if it is idle, from 0; absent: any. */
  slot: z.int().min(0).optional(),
  /** Report how the prompt was read when the answer is done. */
  details: z.boolean().optional(),
  /** Report usage and timings so far with each piece of the answer. */
  timings: z.boolean().optional(),
  /**
   * Tokens with which the answer begins, as another engine has generated them. They are a part of the answer like any other, and
   * sampling, grammar and text go on from there. An engine without our kernels generates them itself.
   */
  given: prefixTokensSchema.optional(),
  /** Report the tokens of the answer, where our kernels run. */
  reportsTokens: z.boolean().optional(),
});
export type GenerationRequest = z.infer<typeof generationRequestSchema>;

export const tokenLogprobSchema = z.object({
  /** Number of the token in the model's vocabulary. */
  id: z.int(),
  token: z.string(),
  /** Natural logarithm of the probability. */
  logprob: z.number(),
  bytes: z.array(z.int()).nullable(),
  top: z.array(
    z.object({ id: z.int(), token: z.string(), logprob: z.number(), bytes: z.array(z.int()).nullable() }),
  ),
});
export type TokenLogprob = z.infer<typeof tokenLogprobSchema>;

const usageSchema = z.object({
  promptTokens: z.int().min(0),
  completionTokens: z.int().min(0),
  /** Prompt tokens that were found in the KV cache. */
  cachedTokens: z.int().min(0),
  /** Completion tokens spent on reasoning, as far as that is known. */
  reasoningTokens: z.int().min(0),
  /** Tokens that were guessed, and those of them that the model said too; absent: none were. */
  guesses: z.object({ tokens: z.int().min(0), kept: z.int().min(0) }).optional(),
});
export type Usage = z.infer<typeof usageSchema>;

/** Tokens between two reports of how long an answer is. */
export const ANSWER_PROGRESS_TOKENS = 16;

const timingsSchema = z.object({
  /** Milliseconds spent on the prompt (prefill). */
  promptMs: z.number().min(0),
  /** Milliseconds spent on generating (decode). */
  completionMs: z.number().min(0),
});
export type Timings = z.infer<typeof timingsSchema>;

const figuresSchema = z.object({ usage: usageSchema, timings: timingsSchema });
/** How much has been read and generated up to a place in an answer, and how long that took. */
export type Figures = z.infer<typeof figuresSchema>;

/** If the request asks for them. */
const soFar = figuresSchema.optional();

/** Where the text of each token ends, if the text of several has been joined on its way to the daemon. */
const ends = z.array(z.int().min(0)).optional();

const detailsSchema = z.object({
  /** As the model has read it, with the special tokens that were added. */
  prompt: z.string(),
  slot: z.int().min(0),
  /** Tokens that are in the KV cache of the slot after the answer. */
  tokensInCache: z.int().min(0),
  /** Whether the context was full before the answer ended. */
  truncated: z.boolean(),
});
export type GenerationDetails = z.infer<typeof detailsSchema>;

export const finishReasonSchema = z.enum(["stop", "length", "tool_calls"]);
export type FinishReason = z.infer<typeof finishReasonSchema>;

export const doneEventSchema = z.object({
  type: z.literal("done"),
  reason: finishReasonSchema,
  /** The stop string that ended the generation, if one did. */
  stopSequence: z.string().optional(),
  usage: usageSchema,
  timings: timingsSchema,
  /** If the request asks for them. */
  details: detailsSchema.optional(),
});

/**
 * One event of a generation. A stream is one `start`, any number of deltas, one `done`. An error is thrown and ends the
 * stream. A tool call arrives as one `tool-call-start` with its index, then `tool-call-delta`s with pieces of the JSON
 * arguments.
 */
export const generationEventSchema = z.discriminatedUnion("type", [
  z.object({ type: z.literal("start") }),
  z.object({
    type: z.literal("prompt-progress"),
    processed: z.int().min(0),
    total: z.int().min(0),
    /** Of these, the tokens that were found in the KV cache. */
    cached: z.int().min(0).optional(),
    /** Since the engine began with the prompt. */
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
    /** When only one call is allowed: up to the start of another one. */
    soFar,
  }),
  z.object({ type: z.literal("tool-call-delta"), index: z.int().min(0), arguments: z.string(), ends, soFar }),
  /**
   * In a shared context, after every {@link ANSWER_PROGRESS_TOKENS}: usage and timings up to here, with the tokens that have
   * no text, or none yet.
   */
  z.object({ type: z.literal("answer-progress"), usage: usageSchema, timings: timingsSchema }),
  /** If the request asks for them: the next tokens of the answer, before the text of any of them. */
  z.object({
    type: z.literal("tokens"),
    ids: z.array(z.int().min(0)),
    /** Those of them that were given, and instead of which this engine would have said others. */
    replaced: z.int().min(0),
    /** Whole answers before this one that did not fit what was asked for, and of which nobody gets anything; absent: none. */
    failedTries: z.int().min(0).optional(),
  }),
  doneEventSchema,
]);
export type GenerationEvent = z.infer<typeof generationEventSchema>;
