import { resolveObjectURL } from "node:buffer";
import path from "node:path";
import { Worker } from "node:worker_threads";
import { toError } from "../../errors/to-error.ts";
import type { EnginePlatform, EngineWorker, LogLevel } from "../core/platform.ts";
import { moduleHeapPatches, STOCK_HEAP_BYTES, workerHeapPatches } from "../core/heap-patches.ts";
import { queueWaitPatches } from "../gpu/queue-wait-patches.ts";
import { applyPatches, type TextPatch } from "../core/worker-patches.ts";

/** Patches of wllama's scripts that only Node needs. */
const MODULE_PATCHES: readonly TextPatch[] = [
  {
    purpose: "start threads from text, without a temporary file",
    find: "new Worker(pthreadMainJs,{",
    replace: "new Worker(pthreadMainJs,{eval:true,",
  },
];

/** Passed to the worker, whose script is evaluated from text and cannot resolve relative paths. */
const GPU_OPENER = path.join(
  import.meta.dirname,
  "..",
  "gpu",
  "calls",
  `open-gpu${path.extname(import.meta.filename)}`,
);

/** How the worker opens its GPU. */
interface WorkerGpu {
  /** Entry file of the package with Dawn. */
  readonly dawnPath: string;
  /** Dawn's flags, which select the adapter. */
  readonly flags: readonly string[];
  /** Longest wait for the GPU, in milliseconds. */
  readonly maxWaitMs: number;
}

/** Limit of the worker's JavaScript heap: wllama's script and one request or result at a time. */
const WORKER_HEAP_MIB = 512;

interface NodePlatformOptions {
  /** Absent: the engine stays on the CPU. */
  readonly gpu?: WorkerGpu | undefined;
  /** Largest heap of the WASM; absent: that of the stock WASM. */
  readonly heapLimitBytes?: number;
}

/**
 * The part of a web worker's global scope that wllama's script uses. `navigator.gpu` is only defined for an engine with
 * a GPU: when it exists, llama.cpp opens a device even for a model that stays on the CPU.
 */
const WORKER_SCOPE = `
{
  const { parentPort, workerData: gpu } = require("node:worker_threads");
  if (gpu) {
    const { openGpu } = require(gpu.openerPath);
    openGpu(require(gpu.dawnPath), gpu.flags);
  }
  globalThis.self = globalThis;
  globalThis.postMessage = (message, transfer) => parentPort.postMessage(message, transfer);
  parentPort.on("message", (data) => globalThis.onmessage?.({ data }));
}
`;

/**
 * wllama's platform inside a Node process. Defines two globals of a page that wllama's code uses.
 * @param wasmUrl file URL of llama.cpp's WASM
 */
export function createNodePlatform(
  wasmUrl: string,
  log: (level: LogLevel, line: string) => void,
  options: NodePlatformOptions = {},
): EnginePlatform {
  const scope = globalThis as { self?: unknown; location?: unknown };
  scope.self ??= globalThis;
  scope.location ??= { href: wasmUrl };
  return { wasmUrl, log, startWorker: (scriptUrl, patch) => startWorker(scriptUrl, patch, options) };
}

function startWorker(
  scriptUrl: string,
  patch: (script: string) => string,
  { gpu, heapLimitBytes = STOCK_HEAP_BYTES }: NodePlatformOptions,
): EngineWorker {
  const shim: EngineWorker = {
    postMessage: (message, options) => queue.push({ message, transfer: options?.transfer ?? [] }),
    terminate: () => {},
    onMessage: () => {},
    onError: () => {},
  };
  const modulePatches = [
    ...MODULE_PATCHES,
    ...moduleHeapPatches(heapLimitBytes),
    ...(gpu ? queueWaitPatches(gpu.maxWaitMs) : []),
  ];
  /** Messages that wllama sends before the worker runs, since reading the script is asynchronous. */
  const queue: { message: unknown; transfer: ArrayBuffer[] }[] = [];

  const start = async (): Promise<void> => {
    const script = await resolveObjectURL(scriptUrl)?.text();
    if (script === undefined) throw new Error("the engine's worker script is missing");
    URL.revokeObjectURL(scriptUrl);
    const patched = applyPatches(patch(script), [...modulePatches, ...workerHeapPatches(heapLimitBytes)]);
    const worker = new Worker(WORKER_SCOPE + patched, {
      eval: true,
      resourceLimits: { maxOldGenerationSizeMb: WORKER_HEAP_MIB },
      workerData: gpu && { ...gpu, openerPath: GPU_OPENER },
    });
    worker.on("message", (data: unknown) => shim.onMessage(data));
    worker.on("error", (error) => shim.onError(toError(error)));
    worker.on("exit", (code) => shim.onError(new Error(`the engine's worker exited with code ${code}`)));
    const send = async (message: unknown, transfer: ArrayBuffer[]): Promise<void> => {
      worker.postMessage(await withTextForBlobs(message, modulePatches), transfer);
    };
    // Only module.init carries a Blob, and wllama waits for its answer before it sends anything else.
    for (const { message, transfer } of queue) await send(message, transfer);
    shim.postMessage = (message, options) => {
      worker.postMessage(message, options?.transfer ?? []);
    };
    shim.terminate = () => void worker.terminate();
  };
  start().catch((error: unknown) => shim.onError(toError(error)));
  return shim;
}

/** wllama sends the script of its threads as a Blob, but Node starts a thread from text. */
async function withTextForBlobs(message: unknown, patches: readonly TextPatch[]): Promise<unknown> {
  if (!hasArguments(message) || !message.args.some((arg) => arg instanceof Blob)) return message;
  const texts = message.args.map(async (arg) =>
    arg instanceof Blob ? applyPatches(await arg.text(), patches) : arg,
  );
  return { ...message, args: await Promise.all(texts) };
}

function hasArguments(message: unknown): message is { args: readonly unknown[] } {
  return typeof message === "object" && message !== null && "args" in message && Array.isArray(message.args);
}
