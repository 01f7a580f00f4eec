import type { EngineFiles, EnginePlatform, EngineWorker, LogLevel, Pixels } from "../core/platform.ts";
import { startPatchedWorker } from "../core/worker-patches.ts";
import { endError, type EndOptions, type EngineConnection, type EngineReceiver } from "../engine-handle.ts";
import type { Engine, EngineExit } from "../engine.ts";
import { sizeWorkgroups } from "../gpu/programs/size-workgroups.ts";
import { gpuKernelPatches, queueWaitPatches } from "../gpu/wgpu-patches.ts";
import { EngineServer } from "../host/engine-server.ts";
import { loadEngine, type LoadEngineOptions } from "../load-engine.ts";
import type { EngineSpec } from "../protocol/engine-spec.ts";
import type { DaemonMessage, EngineMessage } from "../protocol/messages.ts";

/** The files of a model, as Blobs or Files. */
export interface PageModelFiles {
  /** The model, or all its shards in order. */
  readonly model: readonly Blob[];
  readonly projector?: Blob | undefined;
  readonly adapters: readonly { readonly blob: Blob; readonly scale: number }[];
}

export interface PageEngineOptions extends LoadEngineOptions {
  readonly wasmUrl: string;
  /** URL of its script, for a build that needs another script than the default. */
  readonly scriptUrl?: string | undefined;
  /** Maximum heap of the engine, in bytes. */
  readonly heapLimitBytes: number;
  readonly log: (level: LogLevel, line: string) => void;
}

/**
 * Starts an engine in a browser and loads a model. Works as in the daemon, but llama.cpp runs in a worker of this realm
 * instead of a process. If it fails, it rejects with a ServiceError and ends the worker.
 * @param spec its paths are only names; the files are in `files`
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

/** Connection to an engine in this realm: sending a message is a function call. */
class PageConnection implements EngineConnection {
  readonly pid = 0;
  readonly #receiver: EngineReceiver;
  readonly #platform: PagePlatform;
  readonly #server: EngineServer;
  readonly #exited = Promise.withResolvers<EngineExit>();
  #alive = true;

  constructor(files: EngineFiles, options: PagePlatformOptions, receiver: EngineReceiver) {
    this.#receiver = receiver;
    this.#platform = createPagePlatform(options);
    this.#server = new EngineServer({
      open: () => ({ platform: this.#platform, files }),
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
      this.end(`sent an unexpected message: ${message.type}`);
    }
    written?.();
  }
}

/** The browser's Worker class. While an engine loads, the global of this name is the class for wllama. */
const PageWorker = globalThis.Worker;

/** Hides the GPU from a worker, because llama.cpp opens any GPU that it finds, even for a model on the CPU. */
const HIDE_GPU = "delete WorkerNavigator.prototype.gpu;\n";
/** Sets the same workgroup sizes as in the daemon, so that a page computes the same results. */
const SIZE_WORKGROUPS = `if(globalThis.GPUDevice)(${sizeWorkgroups.toString()})(globalThis);\n`;

interface PagePlatformOptions extends Pick<
  PageEngineOptions,
  "wasmUrl" | "scriptUrl" | "heapLimitBytes" | "log"
> {
  /** Longest wait for the browser's GPU, in milliseconds; absent: the engine runs on the CPU. */
  readonly gpuWaitMs?: number | undefined;
}

interface PagePlatform extends EnginePlatform {
  /** Ends the workers and fails all calls that wait for them. */
  terminate(): void;
}

/** Platform of the engine core in a page, or in a worker of a page. */
function createPagePlatform(options: PagePlatformOptions): PagePlatform {
  const workers: EngineWorker[] = [];
  return {
    wasmUrl: options.wasmUrl,
    scriptUrl: options.scriptUrl,
    log: options.log,
    decodeWebp,
    startWorker(scriptUrl, patch) {
      const worker = startWorker(scriptUrl, patch, options);
      workers.push(worker);
      return worker;
    },
    terminate() {
      for (const worker of workers) {
        worker.terminate();
        worker.onError(new Error("the engine has been ended"));
      }
    },
  };
}

/** Decodes with the browser's own decoder, which needs no download. */
async function decodeWebp(file: Uint8Array<ArrayBuffer>): Promise<Pixels> {
  using resources = new DisposableStack();
  const bitmap = resources.adopt(
    await createImageBitmap(new Blob([file], { type: "image/webp" }), { colorSpaceConversion: "none" }),
    (image) => image.close(),
  );
  const { width, height } = bitmap;
  const canvas = new OffscreenCanvas(width, height).getContext("2d");
  if (!canvas) throw new Error("the browser has no canvas in a worker");
  canvas.drawImage(bitmap, 0, 0);
  return canvas.getImageData(0, 0, width, height);
}

function startWorker(
  scriptUrl: string,
  patch: (script: string) => string,
  { heapLimitBytes, gpuWaitMs, scriptUrl: otherScript }: PagePlatformOptions,
): EngineWorker {
  // The other script belongs to the stock kernels, to which these patches do not apply.
  const gpuPatches =
    gpuWaitMs !== undefined && otherScript === undefined ? gpuKernelPatches(true) : undefined;
  return startPatchedWorker(scriptUrl, patch, {
    heapLimitBytes,
    modulePatches: [
      ...(gpuWaitMs === undefined ? [] : queueWaitPatches(gpuWaitMs)),
      ...(gpuPatches?.modulePatches ?? []),
    ],
    workerPatches: gpuPatches?.workerPatches ?? [],
    readScript: async (url) => await (await fetch(url)).text(),
    threadScript: (script) => new Blob([script], { type: "text/javascript" }),
    run(script, shim) {
      const parts = [gpuWaitMs === undefined ? HIDE_GPU : SIZE_WORKGROUPS, script];
      const url = URL.createObjectURL(new Blob(parts, { type: "text/javascript" }));
      const worker = new PageWorker(url);
      // Only after the worker's first message: before that, a busy browser may not have read the script.
      worker.addEventListener("message", () => URL.revokeObjectURL(url), { once: true });
      worker.addEventListener("message", ({ data }: MessageEvent<unknown>) => shim.onMessage(data));
      worker.addEventListener("error", (event) => {
        // Otherwise the browser would also report it as an error of this realm and of the page that started it.
        event.preventDefault();
        shim.onError(new Error(event.message || "the engine's worker could not start"));
      });
      return {
        postMessage: (message, options) => worker.postMessage(message, options?.transfer ?? []),
        terminate: () => worker.terminate(),
      };
    },
  });
}
