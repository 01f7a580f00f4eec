import type { Pixels } from "./to-bmp.ts";

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
  /** The worker could not start or has died: pending calls will not be answered. */
  onError: (error: Error) => void;
}

export type LogLevel = "debug" | "info" | "warn" | "error";

/** What the engine core needs from its environment: a Node process or a web page. */
export interface EnginePlatform {
  /** URL of llama.cpp's WASM, readable from inside the worker. */
  readonly wasmUrl: string;
  /** URL of the script of a WASM that comes with one of its own: the build for older browsers. */
  readonly scriptUrl?: string | undefined;
  /**
   * Starts a worker.
   * @param scriptUrl blob URL of wllama's script
   * @param patch changes that script; throws when it is not the expected one
   */
  startWorker(scriptUrl: string, patch: (script: string) => string): EngineWorker;
  /** Decodes a WebP image that is not animated. Rejects when it is damaged. */
  decodeWebp(file: Uint8Array<ArrayBuffer>): Promise<Pixels>;
  /** Receives the lines that llama.cpp and wllama log. */
  log(level: LogLevel, line: string): void;
}
