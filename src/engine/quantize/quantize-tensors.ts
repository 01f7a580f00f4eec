import type { ChildProcess } from "node:child_process";
import { Readable } from "node:stream";
import { ServiceError } from "../../errors/service-error.ts";
import { CHILD_OUTPUT_FD } from "../channel/parent-channel.ts";
import { describeExit, killGroup, LastLines } from "../child-process.ts";
import { STOCK_WASM_PATH } from "../engine-image.ts";
import { restrictedProcess, spawnFailure, startRestricted } from "../launch.ts";
import type { Sandbox } from "../sandbox/sandboxes.ts";
import { INVALID_WEIGHTS_EXIT_CODE, type QuantizeJob } from "./quantize-job.ts";

/**
 * Converts tensors in a separate process and yields their padded data in order. The process waits for the reader, and
 * ends when the signal aborts or the reader returns.
 */
export type QuantizeTensors = (job: QuantizeJob, signal: AbortSignal) => AsyncIterable<Uint8Array>;

interface QuantizerOptions {
  /** Finds the sandbox for engines, which confines this process, too. */
  readonly findSandbox: () => Promise<Sandbox | undefined>;
}

/** Creates the function that quantizes with these settings. */
export function createTensorQuantizer({ findSandbox }: QuantizerOptions): QuantizeTensors {
  return async function* quantize(job, signal) {
    const sandbox = await findSandbox();
    signal.throwIfAborted();
    const start = restrictedProcess("quantize/quantizer-main", {
      files: [STOCK_WASM_PATH, ...job.files],
      args: [STOCK_WASM_PATH],
      sandbox,
    });
    const child = startRestricted(PROCESS_NAME, start);
    const exit = watchExit(child);
    const stop = (): void => killGroup(child);
    signal.addEventListener("abort", stop);
    try {
      child.stdin?.on("error", () => {});
      child.stdin?.write(`${JSON.stringify(job)}\n`);
      const output: unknown = child.stdio?.[CHILD_OUTPUT_FD];
      if (output instanceof Readable) yield* output;
      const failure = await exit;
      signal.throwIfAborted();
      if (failure) throw failure;
    } catch (error) {
      // The pipe also breaks when the signal ends the process.
      signal.throwIfAborted();
      throw error;
    } finally {
      signal.removeEventListener("abort", stop);
      if (child.exitCode === null && child.signalCode === null) stop();
    }
  };
}

/** Resolves when the process has ended, with the error, if any; never rejects. */
async function watchExit(child: ChildProcess): Promise<ServiceError | undefined> {
  const lines = LastLines.of(child);
  return await new Promise((resolve) => {
    child.on("error", (error) => resolve(spawnFailure(PROCESS_NAME, error)));
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
      resolve(
        new ServiceError(
          "quantization_failed",
          `${PROCESS_NAME} ${describeExit(code, signal)}${line === undefined ? "" : ` (${line})`}.`,
        ),
      );
    });
  });
}

/** Name of the process in errors. */
const PROCESS_NAME = "The process that quantizes";
