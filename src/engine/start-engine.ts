import path from "node:path";
import { checkModelFile, filesOf } from "./check-model-files.ts";
import { engineHeapLimit, STOCK_HEAP_BYTES } from "./core/heap-patches.ts";
import { EngineProcess } from "./engine-process.ts";
import type { StartEngine } from "./engine.ts";
import { findDawn } from "./gpu/find-dawn.ts";
import { loadEngine } from "./load-engine.ts";
import { launchEngine, type SpawnEngine, spawnEngine } from "./launch.ts";
import { STOCK_WASM_PATH } from "./prepare-engine.ts";
import type { Wall } from "./walls/wall.ts";
import { type EngineSpec, engineSpecSchema } from "./protocol/engine-spec.ts";

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
  /** Folder in which a GPU's driver keeps compiled programs; the default is where it does by itself. */
  readonly programCache?: string;
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
  programCache,
  findWall = async () => undefined,
}: EngineStarterOptions): StartEngine {
  return async (requested, options = {}) => {
    options.signal?.throwIfAborted();
    const spec = withAbsolutePaths(engineSpecSchema.parse(requested));
    const files = filesOf(spec);
    for (const file of files) await checkModelFile(file);
    const wall = await findWall();
    const usesGpu = spec.gpu !== undefined && spec.gpuLayers !== 0;
    return await loadEngine(
      (receiver) =>
        new EngineProcess(
          launchEngine({
            runtime,
            wasmPath,
            heapLimitBytes: engineHeapLimit(options.heapLimit?.(spec) ?? heapLimitBytes, heapLimitBytes),
            files,
            spawn,
            wall,
            gpu:
              usesGpu && dawnPath !== undefined
                ? { dawnPath, maxWaitMs: stallTimeoutMs, programCache }
                : undefined,
          }),
          receiver,
        ),
      spec,
      { loadTimeoutMs, stallTimeoutMs, onProgress: options.onProgress, signal: options.signal },
    );
  };
}

/** An engine has another working folder than the daemon. */
function withAbsolutePaths(spec: EngineSpec): EngineSpec {
  return {
    ...spec,
    modelFiles: spec.modelFiles.map((file) => path.resolve(file)),
    ...(spec.projectorFile !== undefined && { projectorFile: path.resolve(spec.projectorFile) }),
    adapters: spec.adapters.map((adapter) => ({ ...adapter, path: path.resolve(adapter.path) })),
    ...(spec.draft && { draft: { ...spec.draft, path: path.resolve(spec.draft.path) } }),
  };
}
