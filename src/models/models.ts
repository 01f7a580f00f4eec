import type { LoadSettings } from "../config/load-settings.ts";
import type { Engine } from "../engine/engine.ts";
import type { ContextExcess } from "../errors/service-error.ts";
import type { Download, PullProgress, PullResult } from "./hub/hub-types.ts";
import type { ImportRequest, ImportStep } from "./import/imported-files.ts";
import type { Model, ModelSource, Speculation } from "./model.ts";
import type { QuantizedModel, QuantizeOptions, QuantizeProgress } from "./quantize/quantize-options.ts";
import type { ModelSlots } from "./slots/model-slots.ts";

/** Load settings and idle time of a request's model. */
export interface Residency {
  /** Tokens of context if the model has to be loaded; absent: by its Modelfile or the configuration. */
  readonly contextSize?: number | undefined;
  /** Layers to offload to the GPU if the model has to be loaded. */
  readonly gpuLayers?: number | undefined;
  /** Load settings if the model has to be loaded; absent ones come from its Modelfile or the configuration. */
  readonly load?: LoadSettings | undefined;
  /**
   * Milliseconds of idleness after which the model is unloaded: 0 right after its last request, Infinity never. Absent:
   * never for an explicit load; for a request the current value of a loaded model, or the configured keep_alive.
   */
  readonly keepAliveMs?: number | undefined;
}

export interface LoadOptions extends Residency {
  readonly alias: string;
  /** A GGUF file; absent: the alias is resolved. */
  readonly path?: string | undefined;
  readonly mmproj?: string | undefined;
  /** Tokens of context if the load, the Modelfile and the configuration set none; absent: chosen automatically. */
  readonly fallbackContext?: number | undefined;
  readonly setDefault?: boolean | undefined;
  /** GGUF file of a draft model; absent: the one of its Modelfile. */
  readonly draft?: string | undefined;
  /** Speculative decoding; absent: as in its Modelfile or the configuration. */
  readonly speculation?: Speculation | undefined;
}

export interface DeletedModel {
  readonly alias: string;
  readonly source: ModelSource["kind"];
}

/**
 * A loaded model leased for one request. Until the lease is disposed, the model is neither evicted nor unloaded by
 * keep_alive; only an explicit unload or a crash ends its engine.
 */
export interface ModelLease extends Disposable {
  readonly model: Model;
  readonly engine: Engine;
  /** Adapter from a model name of the form "base:adapter". */
  readonly adapter?: string | undefined;
  /** Message for a prompt longer than the context, with advice; absent: clients cannot load the model differently. */
  readonly explainExcess?: (excess: ContextExcess) => string;
}

/** Uploaded files by their digest, `sha256:` followed by 64 hexadecimal digits. */
export interface Blobs {
  /** Path of a file; undefined if there is none. @throws ServiceError invalid_parameter for a malformed digest */
  find(digest: string): Promise<string | undefined>;
  /**
   * Saves a file.
   * @throws ServiceError invalid_parameter if its digest differs or it is not a GGUF file
   */
  write(digest: string, chunks: AsyncIterable<Uint8Array> | Iterable<Uint8Array>): Promise<void>;
}

/** Operations on models. All methods reject with a ServiceError. */
export interface Models {
  readonly blobs: Blobs;
  list(): Promise<readonly Model[]>;
  /** Returns a model by alias or hub spec; `name` means `name:latest`. Throws model_not_found. */
  get(name: string): Promise<Model>;
  /** Alias of the default model; undefined if there are no models. */
  readonly defaultAlias: string | undefined;
  setDefault(alias: string): Promise<void>;
  /**
   * Leases a model, and loads it first if necessary. An undefined name means the default model. A crashed engine is
   * restarted here, with a back-off. Throws model_not_found, or model_not_loaded if auto_load is off and no residency
   * is given.
   */
  acquire(name: string | undefined, signal: AbortSignal, residency?: Residency): Promise<ModelLease>;
  load(options: LoadOptions, signal?: AbortSignal): Promise<Model>;
  /** Unloads a model, which fails its requests. With onlyIdle, throws model_busy if there are any. */
  unload(name: string, options?: { onlyIdle?: boolean }): Promise<void>;
  /** Unloads a model and deletes it as {@link ModelSource} describes. */
  delete(name: string): Promise<DeletedModel>;
  /** Downloads a model by alias or hub spec; concurrent pulls of the same model share one download. */
  pull(name: string, onProgress: (progress: PullProgress) => void, signal: AbortSignal): Promise<PullResult>;
  /**
   * Deletes the partial files of an interrupted pull and returns their bytes. Throws model_busy while the download is
   * in progress.
   */
  discard(name: string, signal: AbortSignal): Promise<number>;
  /** Imports models that another program has on this machine. */
  importFrom(request: ImportRequest, signal: AbortSignal): AsyncGenerator<ImportStep, void>;
  /** Estimates if a model of these sizes could be loaded on this machine. */
  fit(sizes: ModelSizes): Promise<ModelFit>;
  /** Downloads in progress, of all clients. */
  readonly downloads: readonly Download[];
  /** Creates a model from the text of a Modelfile, whose relative paths start at `baseFolder`. */
  create(alias: string, modelfile: string, options: { baseFolder?: string }): Promise<Model>;
  copy(source: string, target: string): Promise<Model>;
  /**
   * Quantizes a model and creates a new model with the same settings. An aborted quantization leaves no files. Throws
   * overloaded while another model is being quantized.
   */
  quantize(
    options: QuantizeOptions,
    onProgress: (progress: QuantizeProgress) => void,
    signal: AbortSignal,
  ): Promise<QuantizedModel>;
  /** Sets the default scales of a loaded model's adapters until it is unloaded. Throws model_not_loaded. */
  scaleAdapters(name: string, scales: readonly number[]): Promise<void>;
  /** Returns a Modelfile that would recreate the model. */
  modelfile(name: string): Promise<string>;
  /** Slots of loaded models, and saved prompts. */
  readonly slots: Pick<ModelSlots, "list" | "save" | "restore" | "erase" | "delete">;
  /** Ends all engines; nothing can be loaded afterwards. */
  close(): Promise<void>;
}

/** Facts about a model that is not on disk. */
export interface ModelSizes {
  /** Total bytes of its files. */
  readonly fileBytes: number;
  /** Number of weights; undefined: estimated from the bytes and the quantization. */
  readonly parameters: number | undefined;
  /** Tokens of context it was trained for; undefined: unknown. */
  readonly trainedContext: number | undefined;
  /** Quantization from the file name, such as "Q4_K_M"; undefined: unknown. */
  readonly quantization: string | undefined;
}

/** Estimate of loading a model while no other model is loaded. */
export interface ModelFit {
  readonly fits: boolean;
  /** Bytes of memory its engine needs; if that exceeds the limit of any engine, bytes of the files alone. */
  readonly neededBytes: number;
  /** Tokens of context the estimate assumes. */
  readonly contextSize: number;
  /** Sentence that says why the model does not fit. */
  readonly reason?: string | undefined;
  /** Layers and bytes on the GPU, if models use one. */
  readonly gpu?: { readonly layers: number; readonly allLayers: number; readonly bytes: number } | undefined;
}
