import type {
  GenerationEvent,
  GenerationInput,
  GenerationRequest,
  OutputFormat,
  Sampling,
} from "../engine/protocol/generation.ts";
import type { TokenIds, TokenizeOptions } from "../engine/protocol/calls.ts";
import type { Endpoint } from "../metrics/metrics.ts";
import type { Residency } from "../models/model.ts";
import type { Piece } from "./tokens.ts";

/**
 * A generation as a dialect asks for it, before the model's own settings are applied. An absent setting is
 * filled from the model's Modelfile PARAMETERs first and from `defaults` after that.
 */
export interface InferenceRequest {
  readonly endpoint: Endpoint;
  /** Absent or empty: the default model. */
  readonly model?: string | undefined;
  /**
   * prompt: text for the model as it is. chat: through the chat template.
   * instruct: a chat when the model has a template, else the system text and the prompt as they are.
   * infill: the text between a prefix and a suffix, for models that were trained to fill in the middle.
   */
  readonly input:
    | GenerationInput
    | { readonly kind: "infill"; readonly prefix: string; readonly suffix: string }
    | {
        readonly kind: "instruct";
        readonly prompt: string;
        readonly system?: string | undefined;
        readonly images: readonly Uint8Array<ArrayBuffer>[];
        readonly thinking?: boolean | undefined;
      };
  readonly maxTokens?: number | undefined;
  readonly stop?: readonly string[] | undefined;
  readonly sampling: Sampling;
  readonly format: OutputFormat;
  readonly logprobs?: number | undefined;
  readonly cachePrompt?: boolean | undefined;
  /** Loads the model when it is on disk only; absent: only the configuration's auto_load does. */
  readonly residency?: Residency | undefined;
  /** A further choice of a request that was let in already: it waits for a slot however many others do. */
  readonly isFurther?: boolean | undefined;
  /** What the dialect's specification says where neither the request nor the model does. */
  readonly defaults: { readonly maxTokens?: number; readonly sampling: Sampling };
}

/** How the answer came about; known when the stream begins. */
export interface InferenceStream {
  /** The alias that answers. */
  readonly model: string;
  /** Milliseconds until the model was there: next to none when it was loaded already. */
  readonly loadMs: number;
  /** Throws a ServiceError when the generation fails; cancelled by the signal or by leaving the loop. */
  readonly events: AsyncIterableIterator<InferenceEvent>;
}

/** The engine's events; `done` also says how long the request took in all, queueing included. */
export type InferenceEvent =
  | Exclude<GenerationEvent, { type: "done" }>
  | (Extract<GenerationEvent, { type: "done" }> & { totalMs: number; tokensPerSecond: number });

export interface EmbedRequest {
  readonly model?: string | undefined;
  readonly input: readonly string[];
  /** Of a text that is too long embed the beginning; else it is an error. */
  readonly truncate?: boolean | undefined;
  /** As in {@link InferenceRequest}. */
  readonly residency?: Residency | undefined;
}

export interface EmbedAnswer {
  readonly model: string;
  /** One L2-normalized vector for each input, in order. */
  readonly vectors: number[][];
  readonly totalTokens: number;
  /** As in {@link InferenceStream}. */
  readonly loadMs: number;
}

export interface RerankRequest {
  readonly model?: string | undefined;
  readonly query: string;
  readonly documents: readonly string[];
  /** As in {@link InferenceRequest}. */
  readonly residency?: Residency | undefined;
}

export interface RerankAnswer {
  readonly model: string;
  /** Raw logits, in the order of the documents. */
  readonly scores: readonly number[];
  readonly totalTokens: number;
}

export interface TokenizeRequest {
  readonly model?: string | undefined;
  readonly text: string;
  readonly options: TokenizeOptions;
  /** As in {@link InferenceRequest}. */
  readonly residency?: Residency | undefined;
}

export interface DetokenizeRequest {
  readonly model?: string | undefined;
  readonly tokens: readonly number[] | TokenIds;
  /** As in {@link InferenceRequest}. */
  readonly residency?: Residency | undefined;
}

export interface PromptFromTokensRequest extends DetokenizeRequest {
  /** The request's field that holds the tokens, for errors. */
  readonly param: string;
}

/**
 * The one way from a dialect to an engine: model lookup, defaults, admission, deadline, accounting.
 * Every method rejects with a ServiceError before it does any work when the request cannot succeed.
 */
export interface Inference {
  /** Resolves when a slot is taken and the engine has accepted the request: what fails before has an HTTP status. */
  generate(request: InferenceRequest, signal: AbortSignal): Promise<InferenceStream>;
  embed(request: EmbedRequest, signal: AbortSignal): Promise<EmbedAnswer>;
  rerank(request: RerankRequest, signal: AbortSignal): Promise<RerankAnswer>;
  /** The tokens of a text, by llama.cpp's own tokenizer. Neither waits for a slot nor takes one. */
  tokenize(request: TokenizeRequest, signal: AbortSignal): Promise<TokenIds>;
  /** What each token stands for. */
  pieces(request: DetokenizeRequest, signal: AbortSignal): Promise<Piece[]>;
  /** The text that tokens stand for; bytes that are not text become U+FFFD. */
  detokenize(request: DetokenizeRequest, signal: AbortSignal): Promise<string>;
  /** The prompt that the model takes as exactly these tokens; see promptFromTokens(). */
  promptFromTokens(request: PromptFromTokensRequest, signal: AbortSignal): Promise<string>;
  /** Requests running or waiting for a slot. */
  readonly activeRequests: number;
}

export type { GenerationRequest };
