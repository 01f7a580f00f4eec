/** A file that the engine reads while it loads: the part of Blob that wllama uses. */
export interface BlobLike {
  readonly size: number;
  slice(start?: number, end?: number): BlobLike;
  arrayBuffer(): Promise<ArrayBuffer>;
}

export interface EngineFiles {
  /** The model, or all its shards in order. */
  readonly model: readonly BlobLike[];
  readonly projector?: BlobLike | undefined;
  readonly adapters: readonly { readonly blob: BlobLike; readonly scale: number }[];
  readonly draft?: BlobLike | undefined;
}

/** Returns the same files. @param onProgress called with the fraction of all bytes that has been read, 0..1 */
export function countReads(files: EngineFiles, onProgress: (progress: number) => void): EngineFiles {
  let total = 0;
  let read = 0;
  const counted = (blob: BlobLike): BlobLike => {
    total += blob.size;
    return new CountedBlob(blob, (bytes) => {
      read += bytes;
      // The header is read more than once, so the sum can pass the size.
      onProgress(Math.min(1, read / total));
    });
  };
  return {
    model: files.model.map(counted),
    projector: files.projector && counted(files.projector),
    draft: files.draft && counted(files.draft),
    adapters: files.adapters.map(({ blob, scale }) => ({ blob: counted(blob), scale })),
  };
}

/** A blob that reports how many of its bytes have been read. */
class CountedBlob implements BlobLike {
  readonly size: number;
  readonly #blob: BlobLike;
  readonly #onRead: (bytes: number) => void;

  constructor(blob: BlobLike, onRead: (bytes: number) => void) {
    this.size = blob.size;
    this.#blob = blob;
    this.#onRead = onRead;
  }

  slice(start?: number, end?: number): CountedBlob {
    return new CountedBlob(this.#blob.slice(start, end), this.#onRead);
  }

  async arrayBuffer(): Promise<ArrayBuffer> {
    const bytes = await this.#blob.arrayBuffer();
    this.#onRead(bytes.byteLength);
    return bytes;
  }
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
  log(level: LogLevel, line: string): void;
}
