import { toError } from "../../errors/to-error.ts";
import type { EngineWorker } from "./platform.ts";
import { applyPatches, type TextPatch } from "./worker-patches.ts";

/** How a place, a Node process or a page, runs wllama's scripts. */
interface WorkerPlace {
  /** Patches of llama.cpp's script, in the worker and in its threads. */
  readonly modulePatches: readonly TextPatch[];
  /** Patches of wllama's part of the worker's script. */
  readonly workerPatches: readonly TextPatch[];
  readScript(url: string): Promise<string>;
  /** The script of threads in the form in which llama.cpp starts them here. */
  threadScript(script: string): unknown;
  /** Runs a script, and passes what the worker says to the shim. */
  run(script: string, shim: EngineWorker): Pick<EngineWorker, "postMessage" | "terminate">;
}

/**
 * Starts wllama's worker with its scripts patched, which takes a while: until then messages wait.
 * @param scriptUrl blob URL of wllama's script, which is released
 * @param patch changes that script; throws when it is not the expected one
 */
export function startPatchedWorker(
  scriptUrl: string,
  patch: (script: string) => string,
  place: WorkerPlace,
): EngineWorker {
  const queue: { message: unknown; transfer: ArrayBuffer[] }[] = [];
  let isEnded = false;
  const shim: EngineWorker = {
    postMessage: (message, options) => queue.push({ message, transfer: options?.transfer ?? [] }),
    terminate: () => (isEnded = true),
    onMessage: () => {},
    onError: () => {},
  };
  const start = async (): Promise<void> => {
    const script = await place.readScript(scriptUrl);
    URL.revokeObjectURL(scriptUrl);
    const patched = applyPatches(patch(script), [...place.modulePatches, ...place.workerPatches]);
    if (isEnded) return;
    const worker = place.run(patched, shim);
    shim.terminate = () => worker.terminate();
    // Only module.init carries a script, and wllama waits for its answer before it sends anything else.
    for (const { message, transfer } of queue) {
      worker.postMessage(await withPatchedThreads(message, place), { transfer });
    }
    shim.postMessage = (message, options) => worker.postMessage(message, options);
  };
  start().catch((error: unknown) => shim.onError(toError(error)));
  return shim;
}

/** wllama sends the script of its threads as a Blob. */
async function withPatchedThreads(message: unknown, place: WorkerPlace): Promise<unknown> {
  if (!hasArguments(message) || !message.args.some((arg) => arg instanceof Blob)) return message;
  const args = message.args.map(async (arg) =>
    arg instanceof Blob ? place.threadScript(applyPatches(await arg.text(), place.modulePatches)) : arg,
  );
  return { ...message, args: await Promise.all(args) };
}

function hasArguments(message: unknown): message is { args: readonly unknown[] } {
  return typeof message === "object" && message !== null && "args" in message && Array.isArray(message.args);
}
