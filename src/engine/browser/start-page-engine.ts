import type { EngineFiles, LogLevel } from "../core/platform.ts";
import {
  type EndOptions,
  endError,
  type EngineConnection,
  type EngineReceiver,
} from "../engine-connection.ts";
import type { Engine, EngineExit } from "../engine.ts";
import { EngineServer } from "../host/engine-server.ts";
import { loadEngine } from "../load-engine.ts";
import type { EngineSpec } from "../protocol/engine-spec.ts";
import type { DaemonMessage, EngineMessage } from "../protocol/messages.ts";
import { CountedBlob } from "./counted-blob.ts";
import { createPagePlatform, type PagePlatform, type PagePlatformOptions } from "./page-platform.ts";

/** The files of a model; a File is a Blob too. */
export interface PageModelFiles {
  /** The model, or all its shards in order. */
  readonly model: readonly Blob[];
  readonly projector?: Blob | undefined;
  readonly adapters: readonly { readonly blob: Blob; readonly scale: number }[];
}

export interface PageEngineOptions {
  /** Address of llama.cpp's WebAssembly. */
  readonly wasmUrl: string;
  /** Address of its script, where the package has one of its own for it. */
  readonly scriptUrl?: string | undefined;
  /** Largest heap that the engine may have, in bytes. */
  readonly heapLimitBytes: number;
  /** Longest time without progress while loading, in milliseconds. */
  readonly loadTimeoutMs: number;
  /** How long the engine may be silent about a call in flight, in milliseconds. */
  readonly stallTimeoutMs: number;
  readonly log: (level: LogLevel, line: string) => void;
  readonly onProgress?: ((progress: number) => void) | undefined;
  readonly signal?: AbortSignal | undefined;
}

/**
 * Starts an engine in a browser and loads a model: as in the daemon, but llama.cpp runs in a worker of this realm
 * instead of a process. Rejects with a ServiceError and leaves no worker behind.
 * @param spec its paths are names only; the files are given beside it
 */
export async function startPageEngine(
  spec: EngineSpec,
  files: PageModelFiles,
  { loadTimeoutMs, stallTimeoutMs, onProgress, signal, ...options }: PageEngineOptions,
): Promise<Engine> {
  signal?.throwIfAborted();
  const usesGpu = spec.gpu !== undefined && spec.gpuLayers !== 0;
  const platform = { ...options, ...(usesGpu && { gpuWaitMs: stallTimeoutMs }) };
  return await loadEngine((receiver) => new PageConnection(files, platform, receiver), spec, {
    loadTimeoutMs,
    stallTimeoutMs,
    onProgress,
    signal,
  });
}

/** An engine in this realm: messages are function calls. */
class PageConnection implements EngineConnection {
  readonly pid = 0;
  readonly #receiver: EngineReceiver;
  readonly #platform: PagePlatform;
  readonly #server: EngineServer;
  readonly #exited = Promise.withResolvers<EngineExit>();
  #alive = true;

  constructor(files: PageModelFiles, options: PagePlatformOptions, receiver: EngineReceiver) {
    this.#receiver = receiver;
    this.#platform = createPagePlatform(options);
    this.#server = new EngineServer({
      open: (_spec, onRead) => ({ platform: this.#platform, files: countReads(files, onRead) }),
      send: (message, written) => this.#receive(message, written),
      memoryUsage: () => this.#server.heapBytes,
      kill: () => this.end("ended"),
    });
  }

  get alive(): boolean {
    return this.#alive;
  }

  get exited(): Promise<EngineExit> {
    return this.#exited.promise;
  }

  post(message: DaemonMessage): void {
    if (this.#alive) this.#server.receive(message);
  }

  end(reason: string, { expected = false, code }: EndOptions = {}): void {
    if (!this.#alive) return;
    this.#alive = false;
    this.#platform.terminate();
    this.#receiver.end(endError(reason, code));
    this.#exited.resolve({ expected, reason });
  }

  #receive(message: EngineMessage, written?: () => void): void {
    if (!this.#alive) return;
    if (message.type === "fatal") this.end(message.reason);
    else if (!this.#receiver.receive(message)) {
      this.end(`sent a message that was not expected: ${message.type}`);
    }
    written?.();
  }
}

/** @param onProgress called with 0..1, the part of all bytes that has been read */
function countReads(files: PageModelFiles, onProgress: (progress: number) => void): EngineFiles {
  let total = 0;
  let read = 0;
  const counted = (blob: Blob): CountedBlob => {
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
    adapters: files.adapters.map(({ blob, scale }) => ({ blob: counted(blob), scale })),
  };
}
