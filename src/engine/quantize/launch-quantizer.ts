import type { ChildProcess } from "node:child_process";
import path from "node:path";
import { engineRights, MINIMAL_ENVIRONMENT, readableCode, spawnEngine, spawnFailure } from "../launch.ts";
import { STOCK_WASM_PATH } from "../prepare-engine.ts";
import type { Wall } from "../walls/wall.ts";

/** What the process is called in errors. */
export const QUANTIZER = "The process that quantizes";

/** The weights are in WebAssembly memory and buffers, which have no such limit. */
const SCRIPT_HEAP_MIB = 512;

/**
 * Starts a process with the rights of an engine: it may read its own code and the given files, and nothing else.
 * @throws ServiceError resources_exhausted or model_load_failed when the process cannot be started
 */
export function launchQuantizer(files: readonly string[], wall: Wall | undefined): ChildProcess {
  const entry = path.join(import.meta.dirname, `quantizer-main${path.extname(import.meta.filename)}`);
  const readable = [...readableCode(), STOCK_WASM_PATH, ...files];
  const start = {
    command: process.execPath,
    args: [...engineRights(readable), `--max-old-space-size=${SCRIPT_HEAP_MIB}`, entry, STOCK_WASM_PATH],
    env: MINIMAL_ENVIRONMENT,
    cwd: import.meta.dirname,
  };
  const { command, args, ...rest } = wall ? wall.enclose(start, { readable }) : start;
  try {
    return spawnEngine(command, args, rest);
  } catch (error) {
    // Some failures are thrown, others are emitted by the child.
    throw spawnFailure(QUANTIZER, error);
  }
}
