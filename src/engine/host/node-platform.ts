import { resolveObjectURL } from "node:buffer";
import { readFile } from "node:fs/promises";
import path from "node:path";
import { fileURLToPath } from "node:url";
import { Worker } from "node:worker_threads";
import { toError } from "../../errors/service-error.ts";
import type { EnginePlatform, EngineWorker, LogLevel, Pixels } from "../core/platform.ts";
import { startPatchedWorker, STOCK_HEAP_BYTES, type TextPatch } from "../core/worker-patches.ts";
import { gpuKernelPatches, queueWaitPatches } from "../gpu/wgpu-patches.ts";

/** Patches of wllama's scripts that only Node needs. */
const MODULE_PATCHES: readonly TextPatch[] = [
  {
    purpose: "start threads from text, without a temporary file",
    find: "new Worker(pthreadMainJs,{",
    replace: "new Worker(pthreadMainJs,{eval:true,",
  },
];

/** Absolute path for the worker, whose script is evaluated from text and cannot resolve relative paths. */
const GPU_OPENER_PATH = path.join(
  import.meta.dirname,
  "..",
  "gpu",
  "calls",
  `open-gpu${path.extname(import.meta.filename)}`,
);

/** GPU options of the worker. */
interface WorkerGpu {
  /** Entry file of the package with Dawn. */
  readonly dawnPath: string;
  /** Dawn's flags, which select the adapter. */
  readonly flags: readonly string[];
  /** Longest wait for the GPU, in milliseconds. */
  readonly maxWaitMs: number;
  /** False: record the GPU commands of every step anew. Absent: replay the recorded commands of an equal step. */
  readonly replays?: boolean | undefined;
}

/** Maximum JavaScript heap of the worker, which holds wllama's script and one request or result at a time. */
const WORKER_HEAP_MIB = 512;

interface NodePlatformOptions {
  /** Absent: the engine runs on the CPU. */
  readonly gpu?: WorkerGpu | undefined;
  /** Maximum heap of the WASM; absent: that of the stock WASM. */
  readonly heapLimitBytes?: number;
}

/**
 * The part of a web worker's global scope that wllama's script uses. Defines `navigator.gpu` only for an engine with a
 * GPU, because llama.cpp opens any GPU that it finds, even for a model on the CPU.
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
 * Platform of the engine core in a Node process. Defines two globals of a page that wllama's code uses.
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
  return {
    wasmUrl,
    log,
    decodeWebp,
    startWorker: (scriptUrl, patch) => startWorker(scriptUrl, patch, options),
  };
}

function startWorker(
  scriptUrl: string,
  patch: (script: string) => string,
  { gpu, heapLimitBytes = STOCK_HEAP_BYTES }: NodePlatformOptions,
): EngineWorker {
  const gpuPatches = gpu && gpuKernelPatches(gpu.replays !== false);
  return startPatchedWorker(scriptUrl, patch, {
    heapLimitBytes,
    modulePatches: [
      ...MODULE_PATCHES,
      ...(gpu ? queueWaitPatches(gpu.maxWaitMs) : []),
      ...(gpuPatches?.modulePatches ?? []),
    ],
    workerPatches: gpuPatches?.workerPatches ?? [],
    async readScript(url) {
      const script = await resolveObjectURL(url)?.text();
      if (script === undefined) throw new Error("the engine's worker script is missing");
      return script;
    },
    threadScript: (script) => script,
    run(script, shim) {
      const worker = new Worker(WORKER_SCOPE + script, {
        eval: true,
        resourceLimits: { maxOldGenerationSizeMb: WORKER_HEAP_MIB },
        workerData: gpu && { ...gpu, openerPath: GPU_OPENER_PATH },
      });
      worker.on("message", (data: unknown) => shim.onMessage(data));
      worker.on("error", (error) => shim.onError(toError(error)));
      worker.on("exit", (code) => shim.onError(new Error(`the engine's worker exited with code ${code}`)));
      return {
        postMessage: (message, options) => worker.postMessage(message, options?.transfer ?? []),
        terminate: () => void worker.terminate(),
      };
    },
  });
}

type Decode = (file: ArrayBuffer) => Promise<Pixels>;

let decoder: Promise<Decode> | undefined;

/** Decodes a WebP image in WebAssembly, which is loaded for the first image. Rejects if the image is damaged. */
async function decodeWebp(file: Uint8Array<ArrayBuffer>): Promise<Pixels> {
  decoder ??= loadDecoder();
  const decode = await decoder;
  return await decode(file.buffer.slice(file.byteOffset, file.byteOffset + file.byteLength));
}

async function loadDecoder(): Promise<Decode> {
  const wasm = fileURLToPath(import.meta.resolve("@jsquash/webp/codec/dec/webp_dec.wasm"));
  const { default: decode, init } = await import("@jsquash/webp/decode.js");
  // By default it would fetch its WebAssembly, as in a page.
  await init(await WebAssembly.compile(await readFile(wasm)));
  return decode;
}
