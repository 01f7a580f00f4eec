import type { ChildProcess } from "node:child_process";
import path from "node:path";
import { Readable } from "node:stream";
import { ServiceError } from "../../errors/service-error.ts";
import { CHILD_SPEAKS_ON } from "../channel/parent-channel.ts";
import { killGroup, LastLines } from "../child-process.ts";
import { STOCK_WASM_PATH } from "../engine-image.ts";
import { engineRights, MINIMAL_ENVIRONMENT, readableCode, spawnEngine, spawnFailure } from "../launch.ts";
import type { Sandbox } from "../sandbox/sandbox.ts";
import { INVALID_WEIGHTS_EXIT_CODE, type QuantizeJob } from "./quantize-job.ts";

/**
 * Converts tensors in a process of its own, and yields their data one after another, padded. The process does not get
 * ahead of who reads, and ends when the signal aborts or nobody reads any more.
 */
export type QuantizeTensors = (job: QuantizeJob, signal: AbortSignal) => AsyncIterable<Uint8Array>;

interface QuantizerOptions {
  /** Finds the wall for engines, which this process gets too. */
  readonly findWall: () => Promise<Sandbox | undefined>;
}

/** Lines of output kept to explain an exit. */
const KEPT_LINES = 20;

/** Creates the function that quantizes with these settings. */
export function createTensorQuantizer({ findWall }: QuantizerOptions): QuantizeTensors {
  return async function* quantize(job, signal) {
    const wall = await findWall();
    signal.throwIfAborted();
    const child = launchQuantizer(job.files, wall);
    const exit = watchExit(child);
    const stop = (): void => killGroup(child);
    signal.addEventListener("abort", stop);
    try {
      child.stdin?.on("error", () => {});
      child.stdin?.write(`${JSON.stringify(job)}\n`);
      const output: unknown = child.stdio?.[CHILD_SPEAKS_ON];
      if (output instanceof Readable) yield* output;
      const failure = await exit;
      signal.throwIfAborted();
      if (failure) throw failure;
    } catch (error) {
      // A pipe that breaks because the process was ended is no failure of its own.
      signal.throwIfAborted();
      throw error;
    } finally {
      signal.removeEventListener("abort", stop);
      if (child.exitCode === null && child.signalCode === null) stop();
    }
  };
}

/** Resolves when the process has ended, with what went wrong; never rejects. */
async function watchExit(child: ChildProcess): Promise<ServiceError | undefined> {
  const lines = new LastLines(KEPT_LINES);
  if (child.stdout) lines.watch(child.stdout);
  if (child.stderr) lines.watch(child.stderr);
  return await new Promise((resolve) => {
    child.on("error", (error) => resolve(spawnFailure(QUANTIZER, error)));
    child.on("exit", () => killGroup(child));
    child.on("close", (code, signal) => {
      if (code === 0) return resolve(undefined);
      if (code === INVALID_WEIGHTS_EXIT_CODE) {
        return resolve(
          new ServiceError(
            "invalid_model_file",
            "The model cannot be quantized: some of its weights are infinite or not numbers.",
          ),
        );
      }
      const line = lines.lastError ?? lines.last;
      const how = signal === null ? `exited with code ${code}` : `was killed by ${signal}`;
      resolve(
        new ServiceError(
          "quantization_failed",
          `${QUANTIZER} ${how}${line === undefined ? "" : ` (${line})`}.`,
        ),
      );
    });
  });
}

/** What the process is called in errors. */
const QUANTIZER = "The process that quantizes";

/** The weights are in WebAssembly memory and buffers, which have no such limit. */
const SCRIPT_HEAP_MIB = 512;

/**
 * Starts a process with the rights of an engine: it may read its own code and the given files, and nothing else.
 * @throws ServiceError resources_exhausted or model_load_failed when the process cannot be started
 */
function launchQuantizer(files: readonly string[], wall: Sandbox | undefined): ChildProcess {
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
