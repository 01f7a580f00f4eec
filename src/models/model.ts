import type { LoadSettings } from "../config/load-settings.ts";
import type { Sampling } from "../engine/protocol/generation.ts";

export interface InfillTokens {
  readonly prefix: string;
  readonly suffix: string;
  readonly middle: string;
  /** Tokens before a repository's and a file's name; not all models have them. */
  readonly repository?: string;
  readonly file?: string;
}

/** Facts from a model's GGUF headers, known without loading it. */
export interface GgufSummary {
  readonly architecture: string;
  /** general.name */
  readonly name: string | undefined;
  /** general.license, such as "apache-2.0". */
  readonly license?: string | undefined;
  readonly parameters: number;
  readonly vocabSize: number;
  /** Tokens of context the model was trained for; 0: unknown. */
  readonly contextLength: number;
  readonly embeddingLength: number;
  /** Attention heads of the block with the most; 0: unknown. */
  readonly headCount: number;
  /** Elements of a key and of a value in one attention head; absent: unknown. */
  readonly headWidths?: { readonly key: number; readonly value: number } | undefined;
  readonly blockCount: number;
  /** Quantization as llama.cpp names it, such as "Q4_K_M", "Q8_0" or "F16". */
  readonly quantization: string;
  /** Total bytes of all files. */
  readonly fileSize: number;
  readonly chatTemplate: string | undefined;
  readonly infill: InfillTokens | undefined;
  /** Ids of the tokens that begin a tool call, such as "<tool_call>". */
  readonly toolCallTokens: readonly number[];
  /** Bytes of KV cache per token of context, at f16. */
  readonly kvBytesPerToken: number;
  /** Bytes of weights by their use. An output of 0 means that the token embedding is also the output matrix. */
  readonly weightBytes: {
    readonly blocks: number;
    readonly largestInBlocks: number;
    readonly embedding: number;
    readonly output: number;
  };
  readonly purpose: "generate" | "embed" | "rerank";
  /** Set for an adapter or a projector, which is no model by itself. */
  readonly auxiliary: "adapter" | "projector" | undefined;
  readonly media: Media;
}

export interface Media {
  readonly image: boolean;
  readonly audio: boolean;
}

export interface Capabilities {
  readonly vision: boolean;
  readonly audio: boolean;
  readonly tools: boolean;
  readonly thinking: boolean;
  readonly json: boolean;
}

/** Origin of a context size. */
export type ContextSource =
  /** Set by the request that loaded the model. */
  | "request"
  /** PARAMETER num_ctx of the Modelfile. */
  | "modelfile"
  /** models.context_size of the configuration. */
  | "configuration"
  /** Default of the API that loaded the model. */
  | "default"
  /** Limited to the context the model was trained for. */
  | "trained"
  /** Largest context that is chosen automatically. */
  | "automatic"
  /** Smaller than that, because of the available memory. */
  | "memory";

export type ModelState = "available" | "downloading" | "loading" | "loaded" | "unloading";

/** Origin of a model, which decides what deleting it does. */
export type ModelSource =
  /**
   * Ships with the project: delete hides it until the next start, or until it is loaded or pulled again. `base` is set
   * if it is derived from another shipped model by a shipped Modelfile.
   */
  | { readonly kind: "shipped"; readonly base: string | undefined }
  /** In the hub cache: delete removes its files. */
  | { readonly kind: "hub"; readonly spec: string; readonly repo: string; readonly revision: string }
  /** The user's own file: delete only removes it from the list. */
  | { readonly kind: "file" }
  /** Created from a Modelfile: delete removes the definition and keeps the base. */
  | { readonly kind: "modelfile"; readonly base: string }
  /** Only on other machines of the fleet. */
  | { readonly kind: "fleet"; readonly machines: readonly string[] };

/** Defaults of a model for requests, from its Modelfile's PARAMETER, SYSTEM and so on. */
export interface ModelSettings {
  readonly system: string | undefined;
  /** Chat template in Jinja; a Go template of a Modelfile is translated when it is read. */
  readonly template: string | undefined;
  readonly sampling: Sampling;
  readonly maxTokens: number | undefined;
  /** Stops answers that repeat themselves endlessly; absent: as configured. */
  readonly repetitionGuard?: boolean | undefined;
  readonly stop: readonly string[];
  readonly contextSize: number | undefined;
  readonly gpuLayers: number | undefined;
  /** Load settings of llama.cpp; absent ones come from the configuration. */
  readonly load: LoadSettings;
  /** Speculative decoding; absent: as configured. */
  readonly speculation?: Speculation | undefined;
  readonly thinking: { readonly start: string; readonly end: string; readonly enabled: boolean } | undefined;
  readonly toolFormat: ToolFormat | undefined;
  /** CAPABILITY flags, which override detected capabilities. */
  readonly capabilities: Partial<Capabilities>;
  /** MESSAGE: messages inserted after the system prompt of every chat. */
  readonly messages?: readonly InitialMessage[] | undefined;
}

interface InitialMessage {
  readonly role: "system" | "user" | "assistant";
  readonly content: string;
}

/** Settings of a model without a Modelfile. The order of all settings is part of the digests in Ollama's answers. */
export const NO_SETTINGS: ModelSettings = {
  system: undefined,
  template: undefined,
  sampling: {},
  maxTokens: undefined,
  repetitionGuard: undefined,
  stop: [],
  contextSize: undefined,
  gpuLayers: undefined,
  load: {},
  speculation: undefined,
  thinking: undefined,
  toolFormat: undefined,
  capabilities: {},
};

/** TOOLFORMAT: markers around tool calls and results, for models whose chat template has none. */
export interface ToolFormat {
  readonly style: string;
  readonly callStart: string;
  readonly callEnd: string;
  readonly resultStart: string;
  readonly resultEnd: string;
}

/** Snapshot of a model. */
export interface Model {
  readonly alias: string;
  readonly source: ModelSource;
  readonly state: ModelState;
  /** GGUF file, or the first shard. */
  readonly path: string;
  readonly files: readonly string[];
  readonly projector: string | undefined;
  /** GGUF file of its draft model for speculative decoding. */
  readonly draft?: string | undefined;
  readonly adapters: readonly {
    readonly path: string;
    /** Scale for requests that set none. */
    readonly scale: number;
    /** Unique among the model's adapters. */
    readonly name: string;
  }[];
  readonly gguf: GgufSummary;
  readonly capabilities: Capabilities;
  readonly settings: ModelSettings;
  /** Tokens of context of the loaded engine, or that it would be loaded with. */
  readonly contextSize: number;
  /** Load settings that were used, or would be; settings left at llama.cpp's defaults are absent. */
  readonly loadSettings: LoadSettings;
  /** Speculative decoding, now or once it is loaded; absent: off by default. */
  readonly speculation?: Speculation | undefined;
  /** Origin of the context size; absent: unknown. */
  readonly contextSource?: ContextSource | undefined;
  /** Layers offloaded to the GPU, or that a load would request. */
  readonly gpuLayers: number;
  readonly isDefault: boolean;
  readonly activeRequests: number;
  /** Last change of its files, in Unix milliseconds. */
  readonly modifiedAt: number;
  /** Resident bytes of its engine; undefined: not loaded. */
  readonly memoryBytes: number | undefined;
  /** Time at which the idle model will be unloaded, in Unix milliseconds; undefined: never, or not loaded. */
  readonly expiresAt: number | undefined;
  /** Bytes of GPU memory reserved for it; absent: not loaded. */
  readonly gpuMemoryBytes?: number | undefined;
  /** Number of slots, which is how many requests it answers at once; absent: not loaded. */
  readonly slots?: number | undefined;
  /** Time of the last use by a request, in Unix milliseconds; absent: not loaded. */
  readonly lastUsedAt?: number | undefined;
}

/**
 * Modes of speculative decoding. ngram: drafts tokens from repetitions in the text. auto: ngram and the draft model if
 * the model has one, otherwise off.
 */
export const SPECULATIONS = ["auto", "ngram", "off"] as const;

export type Speculation = (typeof SPECULATIONS)[number];
