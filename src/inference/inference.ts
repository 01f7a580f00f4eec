import { z } from "zod";
import type { TokenIds, TokenizeOptions } from "../engine/protocol/calls.ts";
import type {
  GenerationEvent,
  GenerationInput,
  GenerationRequest,
  OutputFormat,
  Sampling,
  TokenLogprob,
} from "../engine/protocol/generation.ts";
import type { Endpoint } from "../metrics/metrics.ts";
import type { Residency } from "../models/models.ts";
import type { TextLanguage } from "../grammar/text-grammar.ts";
import type { ModelLoad } from "./engine-queues.ts";
import type { InfillParts } from "./infill-prompt.ts";
import type { AdapterChoice } from "./lora-adapters.ts";
import type { WorkFollower } from "./request-accounting.ts";
import type { PromptToken } from "./score-prompt.ts";
import type { TokenText } from "./tokens.ts";

/** What a text must be, from which a grammar is yet to be made. */
interface TextsFormat {
  readonly type: "texts";
  readonly language: TextLanguage;
  readonly given: string | readonly string[];
  /** The field that says so. */
  readonly param: string;
}

export type RequestedFormat = OutputFormat | TextsFormat;

/**
 * A generation as requested by a dialect, before the model's settings are applied. An absent setting comes from the model's
 * PARAMETERs, or else from `defaults`.
 */
export interface InferenceRequest {
  readonly endpoint: Endpoint;
  /** Absent or empty: the default model. */
  readonly model?: string | undefined;
  /**
   * prompt: text for the model, unchanged. chat: through the chat template.
   * instruct: a chat if the model has a template, otherwise system text and prompt unchanged.
   * infill: the text between a prefix and a suffix, for models that were trained to fill in the middle.
   */
  readonly input:
    | GenerationInput
    | ({ readonly kind: "infill" } & InfillParts)
    | {
        readonly kind: "instruct";
        readonly prompt: string;
        readonly system?: string | undefined;
        readonly images: readonly Uint8Array<ArrayBuffer>[];
        readonly thinking?: boolean | undefined;
        /** As those of a chat. */
        readonly templateVariables?: Record<string, unknown> | undefined;
      };
  readonly maxTokens?: number | undefined;
  /** Most tokens of reasoning; absent: as the effort among the template's variables says. */
  readonly reasoningBudget?: number | undefined;
  readonly stop?: readonly string[] | undefined;
  readonly sampling: Sampling;
  readonly format: RequestedFormat;
  readonly logprobs?: number | undefined;
  /** Also those of tokens without text, such as the one that ends the generation. */
  readonly emptyTokens?: boolean | undefined;
  /**
   * Called with every token as the model generates it, those of reasoning and tool calls included; needs `logprobs`.
   */
  readonly onTokens?: ((tokens: readonly TokenLogprob[]) => void) | undefined;
  /** Tokens with which the answer begins, as another machine has generated them; they are told like all others. */
  readonly given?: GenerationRequest["given"];
  /** Answers before the one with these tokens that did not fit; absent: whoever asks does not know of any. */
  readonly failedTries?: number | undefined;
  /**
   * Called with the tokens of the answer, before the text of any of them; never where the engine does not know them, or where
   * it may have to begin the answer again and `failedTries` is absent.
   */
  readonly onChosen?: ((tokens: ChosenTokens) => void) | undefined;
  readonly cachePrompt?: boolean | undefined;
  /** Least tokens of a moved part of the prompt that is reused, 0: none is; absent: as the model was loaded. */
  readonly cacheReuse?: number | undefined;
  /** The slot that answers, from 0, once it is idle; absent: any. */
  readonly slot?: number | undefined;
  /** What a context that shifts does when it is full; absent: as the model was loaded. */
  readonly shift?: GenerationRequest["shift"];
  /** The model's adapters that work on the answer; absent: as its Modelfile says. */
  readonly adapters?: readonly AdapterChoice[] | undefined;
  /** Have the last event tell how the prompt was read. */
  readonly details?: boolean | undefined;
  /** Have each piece of the answer tell usage and timings up to there. */
  readonly timings?: boolean | undefined;
  /** Stop an answer that runs in circles. */
  readonly repetitionGuard?: boolean | undefined;
  /** Loads the model if it is not loaded; absent: unless the configuration's auto_load is off. */
  readonly residency?: Residency | undefined;
  /** This is another choice of an admitted request, and not subject to the queue's limit. */
  readonly furtherOf?: Pick<InferenceStream, "follower"> | undefined;
  /** False: refuse with `overloaded` what cannot begin at once. */
  readonly mayWait?: boolean | undefined;
  /** False: whoever asks counts it, with other parts of the same answer. */
  readonly isCounted?: boolean | undefined;
  /** False: whoever asks ends it in time. */
  readonly isTimed?: boolean | undefined;
  /** The client gets nothing before the answer is complete. */
  readonly isWhole?: boolean | undefined;
  /** What the dialect could not convert and does not refuse, in words for the user. */
  readonly warnings?: readonly string[] | undefined;
  /** The API's defaults for settings that neither the request nor the model has. */
  readonly defaults: { readonly maxTokens?: number | undefined; readonly sampling: Sampling };
}

/** The next tokens of an answer. */
export type ChosenTokens = Omit<Extract<GenerationEvent, { type: "tokens" }>, "type">;

/** An answer whose stream has begun. */
export interface InferenceStream {
  /** The alias that answers. */
  readonly model: string;
  /** Milliseconds until the model was available; almost none if it was already loaded. */
  readonly loadMs: number;
  /** The sampling settings in effect. */
  readonly sampling: Sampling;
  /** What the request asks for and does not get, in words for the user. */
  readonly warnings: readonly string[];
  /** Throws a ServiceError when the generation fails; cancelled by the signal or by leaving the loop. */
  readonly events: AsyncIterableIterator<InferenceEvent>;
  /** Who is told of the request's figures, for further choices of it. */
  readonly follower?: WorkFollower;
  /** The machine that answers, or that has, when it is not this one. */
  readonly elsewhere?: (() => AnsweringMachine) | undefined;
}

/** Another machine of the fleet that answers. */
export interface AnsweringMachine {
  /** Such as "AMD EPYC 9124, linux x64". */
  readonly machine: string;
  /** SHA-256 of its engine. */
  readonly engineSha256: string;
  /** Layers of the model on a GPU; undefined: it has not told. */
  readonly gpuLayers: number | undefined;
}

/** How an answer came that more than one machine has given. */
export interface AnswerMoves {
  /** How often another machine has gone on with it. */
  readonly times: number;
  /** Tokens that the client had by then, and instead of which the next machine would have said others. */
  readonly otherTokens: number;
}

/**
 * The engine's events that are for the reader of an answer; `done` also has the request's total time, including queueing, which
 * limit cut the answer off, and whether it has moved.
 */
export type InferenceEvent =
  | Exclude<GenerationEvent, { type: "done" | "answer-progress" | "tokens" }>
  | (Extract<GenerationEvent, { type: "done" }> & {
      totalMs: number;
      tokensPerSecond: number;
      limitedBy?: AnswerLimit | undefined;
      moved?: AnswerMoves | undefined;
    });

/** What requests about many texts have in common with a generation. */
export type BatchRequest = Pick<InferenceRequest, "model" | "residency" | "mayWait" | "isTimed">;

export interface EmbedRequest extends BatchRequest {
  readonly input: readonly string[];
  /** Embed the beginning of a text that is too long; otherwise that is an error. */
  readonly truncate?: boolean | undefined;
}

export interface EmbedAnswer {
  readonly model: string;
  /** One L2-normalized vector for each input, in order. */
  readonly vectors: number[][];
  readonly totalTokens: number;
  /** As in {@link InferenceStream}. */
  readonly loadMs: number;
}

export interface RerankRequest extends BatchRequest {
  readonly query: string;
  readonly documents: readonly string[];
}

export interface RerankAnswer {
  readonly model: string;
  /** Raw logits, in the order of the documents. */
  readonly scores: readonly number[];
  readonly totalTokens: number;
}

export interface ScoreRequest extends BatchRequest {
  /** Texts, or tokens as the client has made them. */
  readonly prompts: readonly (string | readonly number[])[];
  /** Alternatives to report for each token; absent: no log-probabilities at all. */
  readonly logprobs?: number | undefined;
}

export interface ScoreAnswer {
  readonly model: string;
  /** Of each prompt: its tokens with their log-probabilities, and how many the model has read. */
  readonly prompts: readonly { readonly shown: readonly PromptToken[]; readonly tokens: number }[];
}

export interface TokenizeRequest extends Pick<InferenceRequest, "model" | "residency"> {
  readonly text: string;
  readonly options: TokenizeOptions;
}

export interface DetokenizeRequest extends Pick<InferenceRequest, "model" | "residency"> {
  readonly tokens: readonly number[] | TokenIds;
}

export interface PromptFromTokensRequest extends DetokenizeRequest {
  /** The request's field that holds the tokens, for errors. */
  readonly param: string;
}

/**
 * The only way from a dialect to an engine: model lookup, defaults, admission, deadline, accounting. If a request cannot
 * succeed, every method rejects with a ServiceError before doing any work.
 */
export interface Inference {
  /** Resolves when the request has a slot and the engine has accepted it; failures before that have an HTTP status. */
  generate(request: InferenceRequest, signal: AbortSignal): Promise<InferenceStream>;
  embed(request: EmbedRequest, signal: AbortSignal): Promise<EmbedAnswer>;
  rerank(request: RerankRequest, signal: AbortSignal): Promise<RerankAnswer>;
  /** The log-probabilities of prompts' tokens; see scorePrompt(). */
  score(request: ScoreRequest, signal: AbortSignal): Promise<ScoreAnswer>;
  /** The tokens of a text, by llama.cpp's own tokenizer. Neither waits for a slot nor takes one. */
  tokenize(request: TokenizeRequest, signal: AbortSignal): Promise<TokenIds>;
  /** The text or bytes of each token. */
  pieces(request: DetokenizeRequest, signal: AbortSignal): Promise<TokenText[]>;
  /** The text of tokens; bytes that are not text become U+FFFD. */
  detokenize(request: DetokenizeRequest, signal: AbortSignal): Promise<string>;
  /** A prompt that the model tokenizes to exactly these tokens; see promptFromTokens(). */
  promptFromTokens(request: PromptFromTokensRequest, signal: AbortSignal): Promise<string>;
  /** Requests running or waiting for a slot. */
  readonly activeRequests: number;
  /** What each engine that has been called has to do. */
  readonly loads: readonly ModelLoad[];
}

export const answerLimitSchema = z.enum([
  "max_tokens",
  "num_predict",
  "default",
  "context",
  "repetition",
  "time",
  "indentation",
]);
/** What ended an answer before its end. */
export type AnswerLimit = z.output<typeof answerLimitSchema>;

/** For the end of an answer, beside the API's own reason, which is the same for all limits. */
export const limitField = answerLimitSchema
  .optional()
  .describe(
    "Of an answer that was cut off: which limit that was. max_tokens: the request's; num_predict: the model's PARAMETER; default: this API's; context: the context is full; repetition: it ran in circles (repetition_guard); time: t_max_predict_ms; indentation: n_indent.",
  );

/** The field of {@link limitField}, where an answer was cut off. */
export function limitFields({ limitedBy }: { readonly limitedBy?: AnswerLimit | undefined }): {
  limited_by?: AnswerLimit;
} {
  return limitedBy === undefined ? {} : { limited_by: limitedBy };
}

type DoneEvent = Extract<GenerationEvent, { type: "done" }>;

/** The limit of tokens of an answer, and who has set it. */
export interface TokenLimit {
  readonly tokens: number;
  readonly setBy: Extract<AnswerLimit, "max_tokens" | "num_predict" | "default">;
}

/** Which limit an answer has reached; undefined if it ended by itself. */
export function answerLimit(
  { reason, usage, timings }: Pick<DoneEvent, "reason" | "usage" | "timings">,
  limit: TokenLimit | undefined,
  { maxPredictMs, minIndent }: Pick<Sampling, "maxPredictMs" | "minIndent">,
): AnswerLimit | undefined {
  if (reason !== "length") return undefined;
  if (limit && usage.completionTokens >= limit.tokens) return limit.setBy;
  if (maxPredictMs && timings.completionMs >= maxPredictMs) return "time";
  return minIndent ? "indentation" : "context";
}
