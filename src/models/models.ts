import type { LoadSettings } from "../config/load-settings.ts";
import type { Engine } from "../engine/engine.ts";
import type { ContextExcess } from "../errors/service-error.ts";
import type { Download, PullProgress, PullResult } from "./hub/hub-store.ts";
import type { ImportRequest, ImportStep } from "./import/imported-files.ts";
import type { Model, ModelSource, Speculation } from "./model.ts";
import type { QuantizedModel, QuantizeOptions, QuantizeProgress } from "./quantize/quantize-options.ts";
import type { ModelSlots } from "./slots/model-slots.ts";

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

export interface DeletedModel {
  readonly alias: string;
  readonly source: ModelSource["kind"];
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

/** Everything that the layers above can do with models. All methods reject with a ServiceError. */
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
