import path from "node:path";
import { abortable } from "../async/abortable.ts";
import type { ServiceError } from "../errors/service-error.ts";
import { checkModelFile, filesOf } from "./check-model-files.ts";
import { engineHeapLimit, STOCK_HEAP_BYTES } from "./core/heap-patches.ts";
import { EngineHandle } from "./engine-handle.ts";
import { EngineProcess, type EngineReceiver } from "./engine-process.ts";
import type { StartEngine } from "./engine.ts";
import { findDawn } from "./gpu/find-dawn.ts";
import { launchEngine, type SpawnEngine, spawnEngine } from "./launch.ts";
import { STOCK_WASM_PATH } from "./prepare-engine.ts";
import type { Wall } from "./walls/wall.ts";
import { type EngineMessage, toServiceError } from "./protocol/messages.ts";
import { type EngineInfo, type EngineSpec, engineSpecSchema } from "./protocol/engine-spec.ts";

export interface EngineStarterOptions {
  /** Longest time without progress while a model loads, in milliseconds. */
  readonly loadTimeoutMs: number;
  /** Longest time without a message about a call in flight, in milliseconds. */
  readonly stallTimeoutMs: number;
  /** The Node binary that runs engines; the default is the daemon's. */
  readonly runtime?: string;
  readonly spawn?: SpawnEngine;
  /** llama.cpp's WebAssembly; the default is the one in @wllama/wllama. */
  readonly wasmPath?: string;
  /** Largest heap that it declares, in bytes; an engine may get less. */
  readonly heapLimitBytes?: number;
  /** Entry file of Dawn, for engines that use a GPU; the default is in the npm package. */
  readonly dawnPath?: string | undefined;
  /** Finds the wall for engines; the default is none. */
  readonly findWall?: () => Promise<Wall | undefined>;
}

/** Creates the function that starts engines with these settings. */
export function createEngineStarter({
  loadTimeoutMs,
  stallTimeoutMs,
  runtime = process.execPath,
  spawn = spawnEngine,
  wasmPath = STOCK_WASM_PATH,
  heapLimitBytes = STOCK_HEAP_BYTES,
  dawnPath = findDawn(),
  findWall = async () => undefined,
}: EngineStarterOptions): StartEngine {
  return async (requested, options = {}) => {
    options.signal?.throwIfAborted();
    const spec = withAbsolutePaths(engineSpecSchema.parse(requested));
    const files = filesOf(spec);
    for (const file of files) await checkModelFile(file);
    const wall = await findWall();
    const usesGpu = spec.gpu !== undefined && spec.gpuLayers !== 0;
    const loading = new Loading(options.onProgress);
    let receiver: EngineReceiver = loading;
    const engine = new EngineProcess(
      launchEngine({
        runtime,
        wasmPath,
        heapLimitBytes: engineHeapLimit(options.heapLimit?.(spec) ?? heapLimitBytes, heapLimitBytes),
        files,
        spawn,
        wall,
        gpu: usesGpu && dawnPath !== undefined ? { dawnPath, maxWaitMs: stallTimeoutMs } : undefined,
      }),
      { receive: (message) => receiver.receive(message), end: (error) => receiver.end(error) },
    );
    try {
      engine.post({ type: "load", spec });
      const info = await loading.result(engine, loadTimeoutMs, options.signal);
      const handle = new EngineHandle(engine, spec, info, stallTimeoutMs);
      receiver = handle;
      return handle;
    } catch (error) {
      engine.end("failed to load the model");
      await engine.exited;
      throw error;
    }
  };
}

/** An engine has another working folder than the daemon. */
function withAbsolutePaths(spec: EngineSpec): EngineSpec {
  return {
    ...spec,
    modelFiles: spec.modelFiles.map((file) => path.resolve(file)),
    ...(spec.projectorFile !== undefined && { projectorFile: path.resolve(spec.projectorFile) }),
    adapters: spec.adapters.map((adapter) => ({ ...adapter, path: path.resolve(adapter.path) })),
  };
}

/** An engine process until its model is loaded. */
class Loading implements EngineReceiver {
  readonly #onProgress: ((progress: number) => void) | undefined;
  readonly #info = Promise.withResolvers<EngineInfo>();
  #onMessage: () => void = () => undefined;

  constructor(onProgress: ((progress: number) => void) | undefined) {
    this.#onProgress = onProgress;
    // The engine may end before anybody waits for it.
    this.#info.promise.catch(() => undefined);
  }

  receive(message: EngineMessage): boolean {
    this.#onMessage();
    if (message.type === "load-progress") this.#onProgress?.(message.progress);
    else if (message.type === "loaded") this.#info.resolve(message.info);
    else if (message.type === "load-failed") this.#info.reject(toServiceError(message.error));
    else return false;
    return true;
  }

  end(error: ServiceError): void {
    this.#info.reject(error);
  }

  /** Waits for the model; the caller ends the process when this rejects. */
  async result(
    process: EngineProcess,
    timeoutMs: number,
    signal: AbortSignal | undefined,
  ): Promise<EngineInfo> {
    const timer = setTimeout(() => {
      process.end(`made no progress in loading for ${Math.round(timeoutMs / 1000)} s`, {
        code: "deadline_exceeded",
      });
    }, timeoutMs);
    this.#onMessage = () => timer.refresh();
    try {
      return await (signal ? abortable(this.#info.promise, signal) : this.#info.promise);
    } finally {
      clearTimeout(timer);
    }
  }
}
