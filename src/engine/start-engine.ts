import fs from "node:fs/promises";
import nodePath from "node:path";
import { rethrowExhaustion, ServiceError, toError } from "../errors/service-error.ts";
import { engineHeapLimit, STOCK_HEAP_BYTES } from "./core/worker-patches.ts";
import { STOCK_WASM_PATH } from "./engine-image.ts";
import { EngineProcess } from "./engine-process.ts";
import type { StartEngine } from "./engine.ts";
import { findDawn } from "./gpu/probe-gpu.ts";
import { launchEngine, type SpawnEngine, spawnEngine } from "./launch.ts";
import { loadEngine } from "./load-engine.ts";
import { type EngineSpec, engineSpecSchema } from "./protocol/engine-spec.ts";
import type { Sandbox } from "./sandbox/sandboxes.ts";

export interface EngineStarterOptions {
  /** Longest time without progress while a model loads, in milliseconds. */
  readonly loadTimeoutMs: number;
  /** Longest time without a message about a call in flight, in milliseconds. */
  readonly stallTimeoutMs: number;
  readonly spawn?: SpawnEngine;
  /** llama.cpp's WebAssembly; the default is the one in @wllama/wllama. */
  readonly wasmPath?: string;
  /** Largest heap that it declares, in bytes; an engine may get less. */
  readonly heapLimitBytes?: number;
  /** Entry file of Dawn, for engines that use a GPU; the default is in the npm package. */
  readonly dawnPath?: string | undefined;
  /** Folder for the GPU driver's cache of compiled programs; the default is the driver's. */
  readonly programCache?: string;
  /** Finds the sandbox for engines; the default is none. */
  readonly findSandbox?: () => Promise<Sandbox | undefined>;
}

/** Creates the function that starts engines with these settings. */
export function createEngineStarter({
  loadTimeoutMs,
  stallTimeoutMs,
  spawn = spawnEngine,
  wasmPath = STOCK_WASM_PATH,
  heapLimitBytes = STOCK_HEAP_BYTES,
  dawnPath = findDawn(),
  programCache,
  findSandbox = async () => undefined,
}: EngineStarterOptions): StartEngine {
  return async (requested, options = {}) => {
    options.signal?.throwIfAborted();
    const spec = withAbsolutePaths(engineSpecSchema.parse(requested));
    const files = filesToLoad(spec);
    for (const file of files) await checkModelFile(file);
    const sandbox = await findSandbox();
    const usesGpu = spec.gpu !== undefined && spec.gpuLayers !== 0;
    return await loadEngine(
      (receiver) =>
        new EngineProcess(
          launchEngine({
            wasmPath,
            heapLimitBytes: engineHeapLimit(options.heapLimit?.(spec) ?? heapLimitBytes, heapLimitBytes),
            files,
            spawn,
            sandbox,
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

/** Resolves paths, because an engine has another working folder than the daemon. */
function withAbsolutePaths(spec: EngineSpec): EngineSpec {
  return {
    ...spec,
    modelFiles: spec.modelFiles.map((file) => nodePath.resolve(file)),
    ...(spec.projectorFile !== undefined && { projectorFile: nodePath.resolve(spec.projectorFile) }),
    adapters: spec.adapters.map((adapter) => ({ ...adapter, path: nodePath.resolve(adapter.path) })),
    ...(spec.draft && { draft: { ...spec.draft, path: nodePath.resolve(spec.draft.path) } }),
  };
}

/** First bytes of every GGUF file. */
const GGUF_MAGIC = "GGUF";

/** Shortest possible GGUF: magic, version and two counts. */
const MIN_GGUF_BYTES = 24;

/** All files that an engine loads. */
function filesToLoad(spec: EngineSpec): string[] {
  return [
    ...spec.modelFiles,
    ...(spec.projectorFile === undefined ? [] : [spec.projectorFile]),
    ...spec.adapters.map(({ path }) => path),
    ...(spec.draft ? [spec.draft.path] : []),
  ];
}

/**
 * Rejects a file that cannot be a model, before a process is started.
 * @throws ServiceError model_file_not_found, invalid_model_file or model_load_failed
 */
async function checkModelFile(path: string): Promise<void> {
  const stat = await fs.stat(path).catch((error: unknown) => throwReadError(path, error));
  // Opening a pipe would wait for a writer.
  if (!stat.isFile()) throw new ServiceError("invalid_model_file", `${path} is not a file.`);
  if (stat.size < MIN_GGUF_BYTES) {
    throw new ServiceError(
      "invalid_model_file",
      `${path} has ${stat.size} bytes, which is too small for a model.`,
    );
  }
  const file = await fs.open(path).catch((error: unknown) => throwReadError(path, error));
  try {
    const { buffer } = await file.read(Buffer.alloc(GGUF_MAGIC.length), 0, GGUF_MAGIC.length, 0);
    if (buffer.toString("latin1") !== GGUF_MAGIC) {
      throw new ServiceError("invalid_model_file", `${path} is not a GGUF file.`);
    }
  } finally {
    await file.close();
  }
}

function throwReadError(path: string, error: unknown): never {
  rethrowExhaustion(error);
  if (error instanceof Error && "code" in error && error.code === "ENOENT") {
    throw new ServiceError("model_file_not_found", `The file ${path} does not exist.`, { cause: error });
  }
  throw new ServiceError("model_load_failed", `Cannot read ${path}: ${toError(error).message}`, {
    cause: error,
  });
}
