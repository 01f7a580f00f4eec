import { toError } from "../../errors/to-error.ts";
import { moduleHeapPatches, workerHeapPatches } from "../core/heap-patches.ts";
import type { EnginePlatform, EngineWorker, LogLevel } from "../core/platform.ts";
import { applyPatches, type TextPatch } from "../core/worker-patches.ts";

/** While an engine loads, wllama finds another class under this name. */
const PageWorker = globalThis.Worker;

export interface PagePlatformOptions {
  /** Address of llama.cpp's WebAssembly. */
  readonly wasmUrl: string;
  /** Largest heap that the WebAssembly may grow to, in bytes. */
  readonly heapLimitBytes: number;
}

/** wllama's platform in a browser: in a page, or in a worker of one. */
export function createPagePlatform(
  { wasmUrl, heapLimitBytes }: PagePlatformOptions,
  log: (level: LogLevel, line: string) => void,
): EnginePlatform {
  return {
    wasmUrl,
    log,
    startWorker: (scriptUrl, patch) => startWorker(scriptUrl, patch, heapLimitBytes),
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
    const url = URL.createObjectURL(new Blob([patched], { type: "text/javascript" }));
    const worker = new PageWorker(url);
    worker.addEventListener("message", ({ data }: MessageEvent<unknown>) => shim.onMessage(data));
    worker.addEventListener("error", ({ message }) =>
      shim.onError(new Error(message || "it could not start")),
    );
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
