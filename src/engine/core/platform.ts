/** A file that the engine reads while it loads: the part of the DOM's Blob that wllama uses. */
export interface BlobLike {
  /** Bytes. */
  readonly size: number;
  slice(start?: number, end?: number): BlobLike;
  arrayBuffer(): Promise<ArrayBuffer>;
  stream(): ReadableStream<Uint8Array<ArrayBuffer>>;
}

/** A worker as wllama talks to it; the DOM's Worker fits, and so does a small shim over Node's. */
export interface EngineWorker {
  postMessage(message: unknown, options?: { transfer?: ArrayBuffer[] }): void;
  terminate(): void;
  onMessage: (data: unknown) => void;
  /** The worker could not start or has died: nothing that is pending will be answered. */
  onError: (error: Error) => void;
}

export type LogLevel = "debug" | "info" | "warn" | "error";

/** What the engine core needs from the place where it runs: a process of Node's, or a page. */
export interface EnginePlatform {
  /** Address of llama.cpp's WASM, readable from inside the worker. */
  readonly wasmUrl: string;
  /**
   * Starts the worker whose script wllama has put behind a blob URL.
   * @param patch turns wllama's script into the one to run; throws when the script is not the expected one.
   */
  startWorker(scriptUrl: string, patch: (script: string) => string): EngineWorker;
  /** Receives the lines that llama.cpp and wllama log. */
  log(level: LogLevel, line: string): void;
}
