import type { TokenIds, TokenizeOptions } from "../engine/protocol/calls.ts";
import type {
  AnswerLimit,
  GenerationEvent,
  GenerationInput,
  GenerationRequest,
  OutputFormat,
  Sampling,
  TokenLogprob,
  ToolDefinition,
} from "../engine/protocol/generation.ts";
import type { Endpoint } from "../metrics/metrics.ts";
import type { Residency } from "../models/models.ts";
import type { TextLanguage } from "../grammar/grammar-work.ts";
import type { ModelLoad } from "./engine-queues.ts";
import type { InfillParts } from "./infill-prompt.ts";
import type { AdapterChoice } from "./lora-adapters.ts";
import type { WorkObserver } from "./request-accounting.ts";
import type { PromptToken } from "./score-prompt.ts";
import type { TokenText } from "./tokens.ts";

/** Format in a grammar language that is not compiled to GBNF yet. */
interface TextsFormat {
  readonly type: "texts";
  readonly language: TextLanguage;
  readonly source: string | readonly string[];
  /** Request field with the format, for errors. */
  readonly param: string;
}

export type RequestedFormat = OutputFormat | TextsFormat;

/** Grammar of a tool's text argument, which is enforced as the pattern of its schema. */
export interface ToolGrammar {
  /** The tool as the request has it: names need not be unique. */
  readonly tool: ToolDefinition;
  readonly argument: string;
  readonly language: "regex" | "lark";
  readonly source: string;
}

/**
 * Generation request of any API, before the model's settings are applied. An absent setting comes from the model's
 * PARAMETERs, or else from `defaults`. Requests are sent to other machines of a fleet: the names of fields are on the
 * wire.
 */
export interface InferenceRequest {
  readonly endpoint: Endpoint;
  /** Absent or empty: the default model. */
  readonly model?: string | undefined;
  /**
   * prompt: text for the model, unchanged. chat: rendered by the chat template. instruct: a chat if the model has a
   * template, otherwise system text and prompt unchanged. infill: text between a prefix and a suffix.
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
        /** Variables of the chat template. */
        readonly templateVariables?: Record<string, unknown> | undefined;
      };
  readonly maxTokens?: number | undefined;
  /** Most tokens of reasoning; absent: from the effort among the template's variables. */
  readonly reasoningBudget?: number | undefined;
  readonly stop?: readonly string[] | undefined;
  readonly sampling: Sampling;
  readonly format: RequestedFormat;
  /** Grammars of tools; resolved by the machine where the request arrives. */
  readonly toolGrammars?: readonly ToolGrammar[] | undefined;
  readonly logprobs?: number | undefined;
  /** Include log-probabilities of tokens without text, such as the end-of-turn token. */
  readonly emptyTokens?: boolean | undefined;
  /**
   * Called with every generated token, including those of reasoning and tool calls; requires `logprobs`.
   */
  readonly onLogprobs?: ((tokens: readonly TokenLogprob[]) => void) | undefined;
  readonly continuation?: Continuation | undefined;
  readonly cachePrompt?: boolean | undefined;
  /**
   * Minimum size in tokens of shifted prompt parts to reuse (llama.cpp's n_cache_reuse), 0: none; absent: as loaded.
   */
  readonly cacheReuse?: number | undefined;
  /** Required slot, from 0; absent: any. */
  readonly slot?: number | undefined;
  /** Context shift settings; absent: as the model was loaded. */
  readonly shift?: GenerationRequest["shift"];
  /** LoRA adapters and their scales; absent: as in the Modelfile. */
  readonly adapters?: readonly AdapterChoice[] | undefined;
  /** Add details about the prompt to the last event. */
  readonly details?: boolean | undefined;
  /** Add usage and timings so far to each delta. */
  readonly timings?: boolean | undefined;
  /** Stop an answer that repeats itself. */
  readonly repetitionGuard?: boolean | undefined;
  /** Load the model if it is not loaded; absent: unless the configuration's auto_load is off. */
  readonly residency?: Residency | undefined;
  /** Admitted request of which this is another choice; not subject to the queue limit. */
  readonly choiceOf?: Pick<InferenceStream, "observer"> | undefined;
  /**
   * Sender of a request that may run on another machine instead, and so is refused with `overloaded` unless it can begin
   * at once. dispatcher: this machine's, which counts the answers that it continues; remote: that of another machine,
   * which also limits the time. Absent: a client.
   */
  readonly origin?: "dispatcher" | "remote" | undefined;
  /** True if the client gets only the complete answer. */
  readonly isBuffered?: boolean | undefined;
  /** Warnings for the user about fields that the API ignored. */
  readonly warnings?: readonly string[] | undefined;
  /** Defaults of the API for settings that neither the request nor the model has. */
  readonly defaults: { readonly maxTokens?: number | undefined; readonly sampling: Sampling };
}

/** State of an answer that several machines may generate, one after the other. */
export interface Continuation {
  /** First tokens of the answer, generated by another machine; they are reported like all others. */
  readonly given?: GenerationRequest["given"];
  /** Number of answers before the given one that did not fit the schema; absent: unknown. */
  readonly failedTries?: number | undefined;
  /**
   * Called with the token ids of the answer, before the text of any of them. Never called if the engine does not report
   * ids, or if the answer may be generated again and `failedTries` is absent.
   */
  readonly onTokenIds?: ((tokens: GeneratedTokens) => void) | undefined;
}

/** Token ids of an answer, as they are generated. */
export type GeneratedTokens = Omit<Extract<GenerationEvent, { type: "tokens" }>, "type">;

/** Answer whose stream has begun. */
export interface InferenceStream {
  /** Alias of the model. */
  readonly model: string;
  /** Milliseconds until the model was available; almost 0 if it was already loaded. */
  readonly loadMs: number;
  /** The sampling settings in effect. */
  readonly sampling: Sampling;
  /** Warnings for the user about requested features that are not applied. */
  readonly warnings: readonly string[];
  /** Events; throws a ServiceError if the generation fails. Cancelled by the signal or by leaving the loop. */
  readonly events: AsyncIterableIterator<InferenceEvent>;
  /** Observer of the request, for its other choices. */
  readonly observer?: WorkObserver;
  /** Returns the machine that generates the answer, if it is another one of the fleet. */
  readonly remoteMachine?: (() => AnsweringMachine) | undefined;
}

/** Machine of the fleet that generates an answer. */
export interface AnsweringMachine {
  /** Processor and platform, such as "AMD EPYC 9124, linux x64". */
  readonly machine: string;
  /** SHA-256 of its engine's WASM. */
  readonly engineSha256: string;
  /** Layers of the model on a GPU; undefined: unknown. */
  readonly gpuLayers: number | undefined;
}

/** Failovers of an answer that several machines have generated. */
export interface AnswerFailovers {
  /** Number of times that another machine continued the answer. */
  readonly times: number;
  /** Tokens already sent to the client that the next machine would have chosen differently. */
  readonly otherTokens: number;
}

/**
 * Event of an answer. Beyond the engine's, `done` has the request's total time, including queueing, the limit that
 * truncated the answer, and its failovers.
 */
export type InferenceEvent =
  | Exclude<GenerationEvent, { type: "done" | "answer-progress" | "tokens" }>
  | (Extract<GenerationEvent, { type: "done" }> & {
      totalMs: number;
      tokensPerSecond: number;
      limitedBy?: AnswerLimit | undefined;
      moved?: AnswerFailovers | undefined;
    });

/** Fields that requests about many texts share with a generation. */
export type BatchRequest = Pick<InferenceRequest, "model" | "residency" | "origin">;

export interface EmbedRequest extends BatchRequest {
  readonly input: readonly string[];
  /** Truncate a text that is too long; otherwise it is an error. */
  readonly truncate?: boolean | undefined;
}

export interface EmbedAnswer {
  readonly model: string;
  /** L2-normalized vectors of the inputs, in order. */
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
  /** Texts, or token ids from the client. */
  readonly prompts: readonly (string | readonly number[])[];
  /** Number of alternatives to report for each token; absent: no log-probabilities. */
  readonly logprobs?: number | undefined;
}

export interface ScoreAnswer {
  readonly model: string;
  /** For each prompt, its tokens with their log-probabilities, and the number of tokens that were computed. */
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
  /** Request field with the tokens, for errors. */
  readonly param: string;
}

/**
 * Service between the APIs and the engines: model lookup, defaults, admission, deadline, accounting. Every method
 * rejects with a ServiceError before any work if a request cannot succeed.
 */
export interface Inference {
  /** Resolves when the engine has accepted the request in a slot; errors before that can still set an HTTP status. */
  generate(request: InferenceRequest, signal: AbortSignal): Promise<InferenceStream>;
  embed(request: EmbedRequest, signal: AbortSignal): Promise<EmbedAnswer>;
  rerank(request: RerankRequest, signal: AbortSignal): Promise<RerankAnswer>;
  /** Returns the log-probabilities of prompts' tokens; see scorePrompt(). */
  score(request: ScoreRequest, signal: AbortSignal): Promise<ScoreAnswer>;
  /** Tokenizes a text with llama.cpp's tokenizer, without taking a slot. */
  tokenize(request: TokenizeRequest, signal: AbortSignal): Promise<TokenIds>;
  /** Returns the text or bytes of each token. */
  pieces(request: DetokenizeRequest, signal: AbortSignal): Promise<TokenText[]>;
  /** Returns the text of tokens; invalid UTF-8 becomes U+FFFD. */
  detokenize(request: DetokenizeRequest, signal: AbortSignal): Promise<string>;
  /** Returns a prompt that the model tokenizes to exactly these tokens; see promptFromTokens(). */
  promptFromTokens(request: PromptFromTokensRequest, signal: AbortSignal): Promise<string>;
  /** Requests running or waiting for a slot. */
  readonly activeRequests: number;
  /** Loads of all engines that have been used. */
  readonly loads: readonly ModelLoad[];
}

type DoneEvent = Extract<GenerationEvent, { type: "done" }>;

/** Token limit of an answer and its origin. */
export interface TokenLimit {
  readonly tokens: number;
  readonly setBy: Extract<AnswerLimit, "max_tokens" | "num_predict" | "default">;
}

/** Returns the limit that an answer has reached; undefined if it ended by itself. */
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
