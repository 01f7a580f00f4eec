import type { ChildProcess } from "node:child_process";
import path from "node:path";
import {
  engineRights,
  MINIMAL_ENVIRONMENT,
  readableCode,
  type SpawnEngine,
  spawnFailure,
} from "../launch.ts";
import type { Wall } from "../walls/wall.ts";

interface LaunchOptions {
  readonly runtime: string;
  /** llama.cpp's WebAssembly as @wllama/wllama ships it. */
  readonly wasmPath: string;
  readonly files: readonly string[];
  readonly wall: Wall | undefined;
  readonly spawn: SpawnEngine;
}

/** What the process is called in errors. */
export const QUANTIZER = "The process that quantizes";

/** The weights are in WebAssembly memory and buffers, which have no such limit. */
const SCRIPT_HEAP_MIB = 512;

/**
 * Starts a process with the rights of an engine: it may read its own code and the given files, and nothing else.
 * @throws ServiceError resources_exhausted or model_load_failed when the process cannot be started
 */
export function launchQuantizer({ runtime, wasmPath, files, wall, spawn }: LaunchOptions): ChildProcess {
  const entry = path.join(import.meta.dirname, `quantizer-main${path.extname(import.meta.filename)}`);
  const readable = [...readableCode(), wasmPath, ...files];
  const start = {
    command: runtime,
    args: [...engineRights(readable), `--max-old-space-size=${SCRIPT_HEAP_MIB}`, entry, wasmPath],
    env: MINIMAL_ENVIRONMENT,
    cwd: import.meta.dirname,
  };
  const { command, args, ...rest } = wall ? wall.enclose(start, { readable }) : start;
  try {
    return spawn(command, args, rest);
  } catch (error) {
    // Some failures are thrown, others are emitted by the child.
    throw spawnFailure(QUANTIZER, error);
  }
}
