import { toError } from "../../errors/to-error.ts";
import { moduleHeapPatches, workerHeapPatches } from "../core/heap-patches.ts";
import type { EnginePlatform, EngineWorker, LogLevel } from "../core/platform.ts";
import { applyPatches, type TextPatch } from "../core/worker-patches.ts";

/** While an engine loads, wllama finds another class under this name. */
const PageWorker = globalThis.Worker;

/** While a worker has a GPU, llama.cpp opens a device on it even for a model that stays on the CPU. */
const HIDE_GPU = "delete WorkerNavigator.prototype.gpu;\n";

export interface PagePlatformOptions {
  /** Address of llama.cpp's WebAssembly. */
  readonly wasmUrl: string;
  /** Largest heap that the WebAssembly may have, in bytes. */
  readonly heapLimitBytes: number;
  readonly log: (level: LogLevel, line: string) => void;
}

export interface PagePlatform extends EnginePlatform {
  /** Ends the workers; what waits for them fails. */
  terminate(): void;
}

/** wllama's platform in a browser: in a page, or in a worker of one. */
export function createPagePlatform({ wasmUrl, heapLimitBytes, log }: PagePlatformOptions): PagePlatform {
  const workers: EngineWorker[] = [];
  return {
    wasmUrl,
    log,
    startWorker(scriptUrl, patch) {
      const worker = startWorker(scriptUrl, patch, heapLimitBytes);
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

function startWorker(
  scriptUrl: string,
  patch: (script: string) => string,
  heapLimitBytes: number,
): EngineWorker {
  const modulePatches = moduleHeapPatches(heapLimitBytes);
  /** What wllama sends before the worker runs: reading the script is asynchronous. */
  const queue: { message: unknown; transfer: ArrayBuffer[] }[] = [];
  let isEnded = false;
  const shim: EngineWorker = {
    postMessage: (message, options) => queue.push({ message, transfer: options?.transfer ?? [] }),
    terminate: () => (isEnded = true),
    onMessage: () => {},
    onError: () => {},
  };

  const start = async (): Promise<void> => {
    const script = await (await fetch(scriptUrl)).text();
    URL.revokeObjectURL(scriptUrl);
    const patched = applyPatches(patch(script), [...modulePatches, ...workerHeapPatches(heapLimitBytes)]);
    if (isEnded) return;
    const url = URL.createObjectURL(new Blob([HIDE_GPU, patched], { type: "text/javascript" }));
    const worker = new PageWorker(url);
    worker.addEventListener("message", ({ data }: MessageEvent<unknown>) => shim.onMessage(data));
    worker.addEventListener("error", (event) => {
      // Or it would count as an error of this realm, too, and of the page that started it.
      event.preventDefault();
      shim.onError(new Error(event.message || "the engine's worker could not start"));
    });
    // Only module.init carries a Blob, and wllama waits for its answer before it sends anything else.
    for (const { message, transfer } of queue) {
      worker.postMessage(await withPatchedThreads(message, modulePatches), transfer);
    }
    URL.revokeObjectURL(url);
    shim.postMessage = (message, options) => worker.postMessage(message, options?.transfer ?? []);
    shim.terminate = () => worker.terminate();
  };
  start().catch((error: unknown) => shim.onError(toError(error)));
  return shim;
}

/** wllama sends its threads' script as a Blob. */
async function withPatchedThreads(message: unknown, patches: readonly TextPatch[]): Promise<unknown> {
  if (!hasArguments(message) || !message.args.some((arg) => arg instanceof Blob)) return message;
  const args = message.args.map(async (arg) =>
    arg instanceof Blob
      ? new Blob([applyPatches(await arg.text(), patches)], { type: "text/javascript" })
      : arg,
  );
  return { ...message, args: await Promise.all(args) };
}

function hasArguments(message: unknown): message is { args: readonly unknown[] } {
  return typeof message === "object" && message !== null && "args" in message && Array.isArray(message.args);
}
