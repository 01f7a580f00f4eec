import type { LoadSettings } from "../config/load-settings.ts";
import type { Sampling } from "../engine/protocol/generation.ts";

/** The texts of the tokens with which a model is asked to fill a gap. */
export interface InfillTokens {
  readonly prefix: string;
  readonly suffix: string;
  readonly middle: string;
  /** Before the name of a repository, and before that of a file; not all models have them. */
  readonly repository?: string;
  readonly file?: string;
}

/** What the GGUF header says, without loading the model. */
export interface GgufSummary {
  readonly architecture: string;
  /** general.name, when there is one. */
  readonly name: string | undefined;
  /** general.license, such as "apache-2.0". */
  readonly license?: string | undefined;
  /** Weights in all shards. */
  readonly parameters: number;
  readonly vocabSize: number;
  /** Context the model was trained for, in tokens. */
  readonly contextLength: number;
  readonly embeddingLength: number;
  /** Attention heads of the block with the most; 0 if the header does not say. */
  readonly headCount: number;
  /** Numbers in a key and in a value of one head; absent if the header does not say. */
  readonly headWidths?: { readonly key: number; readonly value: number } | undefined;
  readonly blockCount: number;
  /** Quantization in the field's own words: "Q4_K_M", "Q8_0", "F16". */
  readonly quantization: string;
  /** Bytes of all files. */
  readonly fileSize: number;
  readonly chatTemplate: string | undefined;
  /** The fill-in-the-middle tokens before the prefix, before the suffix, and where the middle is generated. */
  readonly infill: InfillTokens | undefined;
  /** Ids of the tokens with which models begin a tool call, such as "<tool_call>". */
  readonly callTokens: readonly number[];
  /** Bytes of KV cache for one token of context at f16. */
  readonly kvBytesPerToken: number;
  /** Bytes of weights by where they are used; an output of 0 means that the embedding serves as output. */
  readonly weightBytes: {
    readonly blocks: number;
    readonly largestInBlocks: number;
    readonly embedding: number;
    readonly output: number;
  };
  readonly purpose: "generate" | "embed" | "rerank";
  /** Set for an adapter or a projector, which is not a model by itself. */
  readonly auxiliary: "adapter" | "projector" | undefined;
  /** What a projector has encoders for. */
  readonly media: Media;
}

/** What a model can take besides text. */
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

/** Where the size of a context comes from. */
export type ContextSource =
  /** The request that loaded the model. */
  | "request"
  /** PARAMETER num_ctx of its Modelfile. */
  | "modelfile"
  /** models.context_size. */
  | "configuration"
  /** The default of the API that loaded it. */
  | "default"
  /** All that the model was trained for. */
  | "trained"
  /** As much as is chosen without being asked for. */
  | "automatic"
  /** Less than that, because of the memory. */
  | "memory";

export type ModelState = "available" | "downloading" | "loading" | "loaded" | "unloading";

/** Where a model comes from, which decides what deleting it means. */
export type ModelSource =
  /**
   * Ships with the project: delete hides it until the next start, or until it is loaded or pulled again. The base is the
   * model that a Modelfile that ships derives it from.
   */
  | { readonly kind: "shipped"; readonly base: string | undefined }
  /** In the hub cache: delete removes its files. */
  | { readonly kind: "hub"; readonly spec: string; readonly repo: string; readonly revision: string }
  /** The user's own file: delete only removes it from the list. */
  | { readonly kind: "file" }
  /** Created from a Modelfile: delete removes the definition; the base stays. */
  | { readonly kind: "modelfile"; readonly base: string }
  /** On other machines of the fleet alone, which are named. */
  | { readonly kind: "fleet"; readonly machines: readonly string[] };

/** Settings of a model, from PARAMETER, SYSTEM and so on, for requests that do not set their own. */
export interface ModelSettings {
  readonly system: string | undefined;
  /** Jinja; a Modelfile's Go-style template has been translated. */
  readonly template: string | undefined;
  readonly sampling: Sampling;
  readonly maxTokens: number | undefined;
  /** Stop answers that run in circles; absent: as the configuration says. */
  readonly repetitionGuard?: boolean | undefined;
  readonly stop: readonly string[];
  readonly contextSize: number | undefined;
  readonly gpuLayers: number | undefined;
  /** How llama.cpp loads it; what is absent comes from the configuration. */
  readonly load: LoadSettings;
  /** Whether its requests guess tokens; absent: as the configuration says. */
  readonly speculation?: Speculation | undefined;
  readonly thinking: { readonly start: string; readonly end: string; readonly enabled: boolean } | undefined;
  readonly toolFormat: ToolFormat | undefined;
  /** CAPABILITY flags, which override what was detected in the model. */
  readonly capabilities: Partial<Capabilities>;
  /** MESSAGE: what every chat begins with, after its system prompt. */
  readonly messages?: readonly FirstMessage[] | undefined;
}

interface FirstMessage {
  readonly role: "system" | "user" | "assistant";
  readonly content: string;
}

/** The settings of a model that nobody has set anything for. */
export const NO_SETTINGS: ModelSettings = {
  system: undefined,
  template: undefined,
  sampling: {},
  maxTokens: undefined,
  stop: [],
  contextSize: undefined,
  gpuLayers: undefined,
  load: {},
  thinking: undefined,
  toolFormat: undefined,
  capabilities: {},
};

/** TOOLFORMAT: how calls and results are written, for models whose template does not say. */
export interface ToolFormat {
  readonly style: string;
  readonly callStart: string;
  readonly callEnd: string;
  readonly resultStart: string;
  readonly resultEnd: string;
}

/** A snapshot of a model. */
export interface Model {
  readonly alias: string;
  readonly source: ModelSource;
  readonly state: ModelState;
  /** The GGUF file (the first shard). */
  readonly path: string;
  readonly files: readonly string[];
  readonly projector: string | undefined;
  /** The file of its draft model. */
  readonly draft?: string | undefined;
  readonly adapters: readonly {
    readonly path: string;
    /** For requests that do not choose. */
    readonly scale: number;
    /** Its own among those of the model. */
    readonly name: string;
  }[];
  readonly gguf: GgufSummary;
  readonly capabilities: Capabilities;
  readonly settings: ModelSettings;
  /** Context of the loaded engine, or what it would be loaded with. */
  readonly contextSize: number;
  /** How it has been loaded, or would be, as far as anybody has said. */
  readonly loadSettings: LoadSettings;
  /** How its requests guess tokens, now or when it is loaded; absent: not, and nobody has said anything of it. */
  readonly speculation?: Speculation | undefined;
  /** Where that number comes from; absent: unknown. */
  readonly contextSource?: ContextSource | undefined;
  /** Layers actually offloaded, or what a load would request. */
  readonly gpuLayers: number;
  readonly isDefault: boolean;
  readonly activeRequests: number;
  /** Unix milliseconds of the last change of its files. */
  readonly modifiedAt: number;
  /** Resident bytes of its engine, when loaded. */
  readonly memoryBytes: number | undefined;
  /** When an idle engine will be unloaded, Unix milliseconds; undefined: never, or not loaded. */
  readonly expiresAt: number | undefined;
  /** Bytes of the GPU's memory reserved for it, when loaded. */
  readonly gpuMemoryBytes?: number | undefined;
  /** Requests that it can answer at once, when loaded. */
  readonly slots?: number | undefined;
  /** When a request last used it, Unix milliseconds, when loaded. */
  readonly lastUsedAt?: number | undefined;
}

/**
 * How requests of a model guess tokens that are not generated yet; ngram: from what the text repeats; auto: in all ways if it
 * has a draft model, otherwise not.
 */
export const SPECULATIONS = ["auto", "ngram", "off"] as const;

export type Speculation = (typeof SPECULATIONS)[number];
