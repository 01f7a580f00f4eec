import { moduleHeapPatches, workerHeapPatches } from "../core/heap-patches.ts";
import type { EnginePlatform, EngineWorker, LogLevel } from "../core/platform.ts";
import type { Pixels } from "../core/to-bmp.ts";
import { startPatchedWorker } from "../core/start-patched-worker.ts";
import { COMPILED_PROGRAMS_PATCHES, commandStreamPatches } from "../gpu/command-stream-patches.ts";
import { sizeWorkgroups } from "../gpu/programs/size-workgroups.ts";
import { queueWaitPatches } from "../gpu/queue-wait-patches.ts";
import { UPLOADED_READ_PATCHES, weightUploadPatches } from "../gpu/weight-upload-patches.ts";

/** While an engine loads, wllama finds another class under this name. */
const PageWorker = globalThis.Worker;

/** While a worker has a GPU, llama.cpp opens a device on it even for a model that stays on the CPU. */
const HIDE_GPU = "delete WorkerNavigator.prototype.gpu;\n";
/** As the daemon does, so that a page computes the same. */
const SIZE_WORKGROUPS = `if(globalThis.GPUDevice)(${sizeWorkgroups.toString()})(globalThis);\n`;

export interface PagePlatformOptions {
  /** Address of llama.cpp's WebAssembly. */
  readonly wasmUrl: string;
  /** Address of its script, where the package has one of its own for it. */
  readonly scriptUrl?: string | undefined;
  /** Largest heap that the WebAssembly may have, in bytes. */
  readonly heapLimitBytes: number;
  /** Longest wait for the browser's GPU, in milliseconds; absent: the engine stays on the CPU. */
  readonly gpuWaitMs?: number | undefined;
  readonly log: (level: LogLevel, line: string) => void;
}

export interface PagePlatform extends EnginePlatform {
  /** Ends the workers; what waits for them fails. */
  terminate(): void;
}

/** wllama's platform in a browser: in a page, or in a worker of one. */
export function createPagePlatform(options: PagePlatformOptions): PagePlatform {
  const workers: EngineWorker[] = [];
  return {
    wasmUrl: options.wasmUrl,
    scriptUrl: options.scriptUrl,
    log: options.log,
    decodeWebp,
    startWorker(scriptUrl, patch) {
      const worker = startWorker(scriptUrl, patch, options);
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

/** By the browser itself, which needs no download for it. */
async function decodeWebp(file: Uint8Array<ArrayBuffer>): Promise<Pixels> {
  using held = new DisposableStack();
  const bitmap = held.adopt(
    await createImageBitmap(new Blob([file], { type: "image/webp" }), { colorSpaceConversion: "none" }),
    (image) => image.close(),
  );
  const { width, height } = bitmap;
  const canvas = new OffscreenCanvas(width, height).getContext("2d");
  if (!canvas) throw new Error("the browser has no canvas in a worker");
  canvas.drawImage(bitmap, 0, 0);
  return canvas.getImageData(0, 0, width, height);
}

function startWorker(
  scriptUrl: string,
  patch: (script: string) => string,
  { heapLimitBytes, gpuWaitMs, scriptUrl: otherScript }: PagePlatformOptions,
): EngineWorker {
  // The other script belongs to llama.cpp's own kernels, which describe programs one by one and read whole tensors.
  const hasGpuKernels = gpuWaitMs !== undefined && otherScript === undefined;
  return startPatchedWorker(scriptUrl, patch, {
    modulePatches: [
      ...moduleHeapPatches(heapLimitBytes),
      ...(gpuWaitMs === undefined ? [] : queueWaitPatches(gpuWaitMs)),
      ...(hasGpuKernels ? [...weightUploadPatches(), ...commandStreamPatches(true)] : []),
    ],
    workerPatches: [
      ...workerHeapPatches(heapLimitBytes),
      ...(hasGpuKernels ? [...UPLOADED_READ_PATCHES, ...COMPILED_PROGRAMS_PATCHES] : []),
    ],
    readScript: async (url) => await (await fetch(url)).text(),
    threadScript: (script) => new Blob([script], { type: "text/javascript" }),
    run(script, shim) {
      const parts = [gpuWaitMs === undefined ? HIDE_GPU : SIZE_WORKGROUPS, script];
      const url = URL.createObjectURL(new Blob(parts, { type: "text/javascript" }));
      const worker = new PageWorker(url);
      // Not before it has started: a busy browser may not have read the script yet.
      worker.addEventListener("message", () => URL.revokeObjectURL(url), { once: true });
      worker.addEventListener("message", ({ data }: MessageEvent<unknown>) => shim.onMessage(data));
      worker.addEventListener("error", (event) => {
        // Or it would count as an error of this realm, too, and of the page that started it.
        event.preventDefault();
        shim.onError(new Error(event.message || "the engine's worker could not start"));
      });
      return {
        postMessage: (message, options) => worker.postMessage(message, options?.transfer ?? []),
        terminate: () => worker.terminate(),
      };
    },
  });
}
