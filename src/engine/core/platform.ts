/** A file that the engine reads while it loads: the part of Blob that wllama uses. */
export interface BlobLike {
  /** Bytes. */
  readonly size: number;
  slice(start?: number, end?: number): BlobLike;
  arrayBuffer(): Promise<ArrayBuffer>;
  stream(): ReadableStream<Uint8Array<ArrayBuffer>>;
}

export interface EngineFiles {
  /** The model, or all its shards in order. */
  readonly model: readonly BlobLike[];
  readonly projector?: BlobLike | undefined;
  readonly adapters: readonly { readonly blob: BlobLike; readonly scale: number }[];
  readonly draft?: BlobLike | undefined;
}

/** A worker for wllama: a thin layer over a web worker, or over a worker thread of Node. */
export interface EngineWorker {
  postMessage(message: unknown, options?: { transfer?: ArrayBuffer[] }): void;
  terminate(): void;
  onMessage: (data: unknown) => void;
  /** Called when the worker could not start or has ended. Pending calls will not be answered. */
  onError: (error: Error) => void;
}

export type LogLevel = "debug" | "info" | "warn" | "error";

/** Pixels in rows from the top left. Four bytes each: red, green, blue and alpha, not premultiplied. */
export interface Pixels {
  readonly width: number;
  readonly height: number;
  readonly data: Uint8ClampedArray | Uint8Array;
}

/** The engine core's interface to its environment, a Node process or a web page. */
export interface EnginePlatform {
  /** URL of llama.cpp's WASM, readable from inside the worker. */
  readonly wasmUrl: string;
  /** URL of the WASM's script, for the build for older browsers, which needs another script than the default. */
  readonly scriptUrl?: string | undefined;
  /**
   * Starts a worker.
   * @param scriptUrl blob URL of wllama's script
   * @param patch changes that script; throws if it is not the expected one
   */
  startWorker(scriptUrl: string, patch: (script: string) => string): EngineWorker;
  /** Decodes a WebP image that is not animated. Rejects if it is damaged. */
  decodeWebp(file: Uint8Array<ArrayBuffer>): Promise<Pixels>;
  /** Receives the lines that llama.cpp and wllama log. */
  log(level: LogLevel, line: string): void;
}
