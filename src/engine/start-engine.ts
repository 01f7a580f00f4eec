import path from "node:path";
import { checkModelFile, filesOf } from "./check-model-files.ts";
import { engineHeapLimit, STOCK_HEAP_BYTES } from "./core/heap-patches.ts";
import { EngineHandle, toServiceError } from "./engine-handle.ts";
import { EngineProcess } from "./engine-process.ts";
import type { EngineLoadOptions, StartEngine } from "./engine.ts";
import { findDawn } from "./gpu/find-dawn.ts";
import { launchEngine, type SpawnEngine, spawnEngine } from "./launch.ts";
import { STOCK_WASM_PATH } from "./stock-wasm.ts";
import type { Wall } from "./walls/wall.ts";
import { type EngineInfo, type EngineSpec, engineSpecSchema } from "./protocol/engine-spec.ts";

export interface EngineStarterOptions {
  /** Longest time that loading may make no progress, in milliseconds. */
  readonly loadTimeoutMs: number;
  /** How long an engine may say nothing about a call that is in flight, in milliseconds. */
  readonly stallTimeoutMs: number;
  /** The Node binary that runs engines; the default is the daemon's own. */
  readonly runtime?: string;
  readonly spawn?: SpawnEngine;
  /** llama.cpp's WebAssembly; the default is the one that @wllama/wllama ships. */
  readonly wasmPath?: string;
  /** Largest heap that it declares, in bytes; an engine gets as much of it as its model is to have. */
  readonly heapLimitBytes?: number;
  /** Entry file of Dawn, for engines that use a GPU; the default is the npm package's. */
  readonly dawnPath?: string | undefined;
  /** Finds what the operating system puts around engines; the default is nothing. */
  readonly findWall?: () => Promise<Wall | undefined>;
}

/** Makes the function that starts engines with these settings. */
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
    const engine = new EngineProcess(
      launchEngine({
        runtime,
        wasmPath,
        heapLimitBytes: engineHeapLimit(options.heapLimit?.(spec) ?? heapLimitBytes, heapLimitBytes),
        files,
        spawn,
        wall,
        gpu: usesGpu && dawnPath !== undefined ? { dawnPath, longestWaitMs: stallTimeoutMs } : undefined,
      }),
    );
    try {
      const info = await load(engine, spec, options, loadTimeoutMs);
      return new EngineHandle(engine, spec, info, stallTimeoutMs);
    } catch (error) {
      engine.end("failed to load the model");
      await engine.exited;
      throw error;
    }
  };
}

/** An engine's working folder is not the daemon's. */
function withAbsolutePaths(spec: EngineSpec): EngineSpec {
  return {
    ...spec,
    modelFiles: spec.modelFiles.map((file) => path.resolve(file)),
    ...(spec.projectorFile !== undefined && { projectorFile: path.resolve(spec.projectorFile) }),
    adapters: spec.adapters.map((adapter) => ({ ...adapter, path: path.resolve(adapter.path) })),
  };
}

/** Waits for the model to be loaded; whoever called ends the process when this rejects. */
async function load(
  engine: EngineProcess,
  spec: EngineSpec,
  { onProgress, signal }: EngineLoadOptions,
  timeoutMs: number,
): Promise<EngineInfo> {
  const { promise, resolve, reject } = Promise.withResolvers<EngineInfo>();
  // The engine may end while nobody waits yet.
  promise.catch(() => undefined);
  const timer = setTimeout(() => {
    engine.end(`made no progress in loading for ${Math.round(timeoutMs / 1000)} s`, {
      code: "deadline_exceeded",
    });
  }, timeoutMs);
  const onAbort = (): void => reject(signal?.reason);
  signal?.addEventListener("abort", onAbort, { once: true });
  engine.onEnd = reject;
  engine.onMessage = (message) => {
    timer.refresh();
    if (message.type === "load-progress") onProgress?.(message.progress);
    else if (message.type === "loaded") resolve(message.info);
    else if (message.type === "load-failed") reject(toServiceError(message.error));
    else engine.end(`sent a message that was not expected: ${message.type}`);
  };
  try {
    engine.post({ type: "load", spec });
    return await promise;
  } finally {
    clearTimeout(timer);
    signal?.removeEventListener("abort", onAbort);
  }
}
