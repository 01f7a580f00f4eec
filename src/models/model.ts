import type { ModelSlots } from "./slots/model-slots.ts";
import type { ContextExcess } from "../errors/service-error.ts";
import type { LoadSettings } from "../config/load-settings.ts";
import type { Engine } from "../engine/engine.ts";
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

export interface FirstMessage {
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

/** How a request wants its model to be loaded. */
export interface Residency {
  /** Tokens of context, if it has to be loaded; absent: by its settings or the configuration. */
  readonly contextSize?: number | undefined;
  /** Layers to offload, if it has to be loaded. */
  readonly gpuLayers?: number | undefined;
  /** How it is loaded, if it has to be; what is absent comes from its settings or the configuration. */
  readonly load?: LoadSettings | undefined;
  /**
   * Milliseconds of idleness after which it is unloaded: 0 right after its last request, Infinity never. Absent: never for
   * an explicit load; for a request as it was loaded, or the configured keep_alive.
   */
  readonly keepAliveMs?: number | undefined;
}

/**
 * How requests of a model guess tokens that are not generated yet; ngram: from what the text repeats; auto: in all ways if it
 * has a draft model, otherwise not.
 */
export const SPECULATIONS = ["auto", "ngram", "off"] as const;
export type Speculation = (typeof SPECULATIONS)[number];

export interface LoadOptions extends Residency {
  readonly alias: string;
  /** A GGUF file; absent: the alias is resolved. */
  readonly path?: string | undefined;
  readonly mmproj?: string | undefined;
  /** Tokens of context where neither this load nor the model nor the configuration says how many; absent: automatic. */
  readonly fallbackContext?: number | undefined;
  readonly setDefault?: boolean | undefined;
  /** The GGUF file of a draft model; absent: the one of its Modelfile. */
  readonly draft?: string | undefined;
  /** Whether its requests guess tokens; absent: as its Modelfile or the configuration says. */
  readonly speculation?: Speculation | undefined;
}

export type PullProgress =
  | { readonly status: "downloading"; readonly downloadedBytes: number; readonly totalBytes: number }
  | { readonly status: "verifying" }
  /** The hub did not answer correctly; it is asked again after the wait. */
  | ({ readonly status: "retrying" } & HubRetry)
  /** Something that people may want to know, in a sentence without its full stop. */
  | { readonly status: "noted"; readonly text: string };

export interface HubRetry {
  /** What went wrong, in a few words. */
  readonly reason: string;
  readonly waitMs: number;
}

export interface DeletedModel {
  readonly alias: string;
  readonly source: ModelSource["kind"];
}

/** A download under way. */
export interface Download {
  /** The name by which it was asked for first. */
  readonly name: string;
  /** The name that the model will have. */
  readonly alias: string;
  readonly downloadedBytes: number;
  /** 0 until the hub has told it. */
  readonly totalBytes: number;
}

/** What is known of a model that is not on disk. */
export interface ModelSizes {
  /** Bytes of all its files. */
  readonly fileBytes: number;
  /** Number of weights; undefined: guessed from the bytes and the quantization. */
  readonly parameters: number | undefined;
  /** Tokens of context it was trained for, if that is known. */
  readonly trainedContext: number | undefined;
  /** Such as "Q4_K_M", if the name of its file says it. */
  readonly quantization: string | undefined;
}

/** Whether a model can be loaded, when nothing else is. */
export interface ModelFit {
  readonly fits: boolean;
  /** Bytes of the machine's memory that its engine needs; of the files alone if that is more than any engine can have. */
  readonly neededBytes: number;
  /** Tokens of context that this is for. */
  readonly contextSize: number;
  /** Why it does not fit, in a sentence. */
  readonly reason?: string | undefined;
  /** What would be on the GPU, where models use one. */
  readonly gpu?: { readonly layers: number; readonly allLayers: number; readonly bytes: number } | undefined;
}

export interface QuantizeOptions {
  /** Name of the new model; one that was created before is replaced. */
  readonly alias: string;
  /** Text of a Modelfile: its base is quantized, and the rest is kept. Relative paths in it are an error. */
  readonly modelfile: string;
  /** Such as "Q4_K_M". */
  readonly quantization: string;
  /** Whether weights that are quantized already may be quantized again, which costs quality. */
  readonly mayRequantize: boolean;
}

export interface QuantizeProgress {
  /** Quantization of the base. */
  readonly from: string;
  readonly to: string;
  /** Bytes of the new file that are written. */
  readonly completedBytes: number;
  readonly totalBytes: number;
}

export interface QuantizedModel {
  readonly model: Model;
  /** Bytes of the weights before. */
  readonly sourceBytes: number;
  /** Bytes of the new file. */
  readonly sizeBytes: number;
  readonly bitsPerWeight: number;
  /** Tensors that have another type than the usual one, because its blocks do not divide their rows. */
  readonly fallbackTensors: number;
}

export interface ImportRequest {
  /** A program whose folder is known, or the absolute path of a folder. */
  readonly from: string;
  /** Only these, by the names that they have there. */
  readonly names?: readonly string[] | undefined;
  /** Copy files that cannot be had without copying, instead of using them where they are. */
  readonly copy: boolean;
}

export type ImportStep =
  | { readonly status: "reading"; readonly folder: string; readonly models: number }
  | {
      readonly status: "copying";
      readonly name: string;
      readonly copiedBytes: number;
      readonly totalBytes: number;
    }
  /** present: an earlier import has brought it, and nothing has changed since. */
  | {
      readonly status: "imported" | "updated" | "present";
      readonly name: string;
      readonly alias: string;
      readonly placement: Placement;
      readonly sizeBytes: number;
      readonly notes: readonly string[];
    }
  | { readonly status: "skipped"; readonly name: string; readonly reason: string };

/**
 * How a file of another program is had: as a clone that shares its blocks or as a second name of it (both take no space and
 * outlive its program), as a copy, or where it is.
 */
export type Placement = "cloned" | "linked" | "copied" | "in place";

export interface PullResult {
  readonly alias: string;
  /** owner/repository on the hub; empty for a model that ships. */
  readonly repo: string;
  readonly sizeBytes: number;
}

/**
 * A loaded model leased for one request. While a lease is held, the model is neither evicted nor unloaded by keep_alive;
 * only an explicit unload or a crash ends its engine.
 */
export interface ModelLease extends Disposable {
  readonly model: Model;
  readonly engine: Engine;
  /** The adapter that the name of the model chose, as in "base:adapter". */
  readonly adapter?: string | undefined;
  /** What a client is told whose prompt is longer than the context; absent where nobody can load it otherwise. */
  readonly explainExcess?: (excess: ContextExcess) => string;
}

/** Everything that the layers above can do with models. All methods reject with a ServiceError. */
/** Files that clients have uploaded, by their SHA-256, `sha256:` followed by 64 hexadecimal digits. */
export interface Blobs {
  /** The path of a file; undefined when it is not there. @throws ServiceError invalid_parameter for another digest */
  find(digest: string): Promise<string | undefined>;
  /**
   * Saves a file.
   * @throws ServiceError invalid_parameter when its digest is another, or when it is not a GGUF file
   */
  write(digest: string, pieces: AsyncIterable<Uint8Array> | Iterable<Uint8Array>): Promise<void>;
}

export interface Models {
  readonly blobs: Blobs;
  list(): Promise<readonly Model[]>;
  /** Throws model_not_found. The name is an alias, a hub spec of a model on disk, or `name` for `name:latest`. */
  get(name: string): Promise<Model>;
  /** Undefined if there are no models. */
  readonly defaultAlias: string | undefined;
  setDefault(alias: string): Promise<void>;
  /**
   * Leases a loaded model (absent: the default model). Throws model_not_found, or model_not_loaded when auto_load is off and no
   * residency is set, which loads it first. A crashed engine is restarted here, with a back-off.
   */
  acquire(name: string | undefined, signal: AbortSignal, residency?: Residency): Promise<ModelLease>;
  load(options: LoadOptions, signal?: AbortSignal): Promise<Model>;
  /** With onlyIdle, throws model_busy if requests use it; otherwise such requests fail. */
  unload(name: string, options?: { onlyIdle?: boolean }): Promise<void>;
  /** Unloads a model and removes it, as its source defines. */
  delete(name: string): Promise<DeletedModel>;
  /** Downloads by alias or hub spec; callers of the same pull share one download. */
  pull(name: string, onProgress: (progress: PullProgress) => void, signal: AbortSignal): Promise<PullResult>;
  /**
   * Deletes what an interrupted pull has left, and returns how many bytes that were. Throws model_busy while it is being
   * downloaded.
   */
  discard(name: string, signal: AbortSignal): Promise<number>;
  /** Makes models of those that another program has on this machine; see {@link ImportStep}. */
  importFrom(request: ImportRequest, signal: AbortSignal): AsyncGenerator<ImportStep, void>;
  /** Whether a model of these sizes could be loaded on this machine; an estimate. */
  fit(sizes: ModelSizes): Promise<ModelFit>;
  /** Current downloads of all clients. */
  readonly downloads: readonly Download[];
  /** Creates a model from a Modelfile's text. Relative paths in it are relative to `baseFolder`. */
  create(alias: string, modelfile: string, options: { baseFolder?: string }): Promise<Model>;
  copy(source: string, target: string): Promise<Model>;
  /**
   * Quantizes a model and creates another one of the result, with the same settings. Throws overloaded while another one is
   * being quantized. When the signal aborts, nothing remains.
   */
  quantize(
    options: QuantizeOptions,
    onProgress: (progress: QuantizeProgress) => void,
    signal: AbortSignal,
  ): Promise<QuantizedModel>;
  /**
   * Changes with which scales a loaded model's adapters work on requests that do not choose, until it is unloaded. Throws
   * model_not_loaded.
   */
  scaleAdapters(name: string, scales: readonly number[]): Promise<void>;
  /** A Modelfile that would recreate this model. */
  modelfile(name: string): Promise<string>;
  /** What is in the slots of models, and the prompts that are saved of them. */
  readonly slots: Pick<ModelSlots, "list" | "save" | "restore" | "erase" | "delete">;
  /** Ends all engines; nothing can be loaded afterwards. */
  close(): Promise<void>;
}
