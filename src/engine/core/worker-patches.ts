import { MEMORY_CELLS } from "../../../wasm/memory-cells.ts";
import { toError } from "../../errors/service-error.ts";
import type { EngineWorker } from "./platform.ts";

/** One text replacement in a script of wllama. */
export interface TextPatch {
  /** Purpose of the change, for the error message if it cannot be applied. */
  readonly purpose: string;
  readonly find: string;
  readonly replace: string;
}

/**
 * Applies every patch exactly once.
 * @throws Error if a text to replace does not occur exactly once
 */
export function applyPatches(script: string, patches: readonly TextPatch[]): string {
  let patched = script;
  for (const { purpose, find, replace } of patches) {
    const at = patched.indexOf(find);
    if (at < 0 || patched.indexOf(find, at + 1) >= 0) {
      throw new Error(
        `This version of @wllama/wllama is not supported: cannot patch its worker (${purpose}).`,
      );
    }
    patched = patched.slice(0, at) + replace + patched.slice(at + find.length);
  }
  return patched;
}

/** Bytes of a model file that are copied at a time through JavaScript memory into the WASM heap. */
const FILE_CHUNK_BYTES = 8 * 1024 * 1024;

/**
 * Default of llama.cpp's setting `cache_ram_mib` (int32, in MiB). llama.cpp's server has a prompt cache of this size in
 * addition to the KV cache, and wllama has no parameter for it, so an engine would grow with every conversation until
 * its heap is full. A patch overwrites the setting before the model is loaded. It finds it in llama.cpp's static data
 * by its default and the neighboring settings.
 */
const PROMPT_CACHE_DEFAULT = 8192;
/**
 * Offsets in 32-bit numbers and defaults of the neighbors: `n_ctx_checkpoints` and, after padding,
 * `checkpoint_every_nt`.
 */
const NEIGHBORING_SETTINGS = [
  [-3, 32],
  [-2, 0],
  [-1, 8192],
  [1, 0],
] as const;
/** End of the search. Static data is below the stack, which contains copies of it. */
const STATIC_DATA_BYTES = 4 * 1024 * 1024;

/** Suffix of an action that returns existing results without computing another step. */
export const WITHOUT_STEP_SUFFIX = "#held";

/** Verb of the worker's message with the memory of the WASM. */
export const MEMORY_VERB = "daybreak.memory";

/** Number of threads that llama.cpp starts to compute an audio spectrogram. */
export const AUDIO_THREADS = 3;

/**
 * Patches for models with audio input. They start the threads for spectrograms in advance: only the thread that then
 * waits for them could start them later, which would be a deadlock.
 */
export const AUDIO_PATCHES: readonly TextPatch[] = [
  {
    purpose: "start threads for audio spectrograms",
    find: "pthreadPoolSize: hasMultithread ? pthreadPoolSize : 0,",
    replace: `pthreadPoolSize: hasMultithread ? Math.max(pthreadPoolSize, ${AUDIO_THREADS}) : 0,`,
  },
];

/** Patches of wllama's worker script for every WASM. See also worker-verbs.ts and {@link workerHeapPatches}. */
export const WORKER_PATCHES: readonly TextPatch[] = [
  {
    purpose: "remember the last error that llama.cpp logged",
    find: "const logLine = cppLogToJSLog(text);",
    replace: `const logLine = cppLogToJSLog(text);
      if (logLine.level === 'error') lastErrorLines.push(logLine.text);
      else if (logLine.level === 'log' && lastErrorLines.length > 0) lastErrorLines.push(logLine.text);
      if (lastErrorLines.length > 20) lastErrorLines.shift();`,
  },
  {
    purpose: "declare the list of errors",
    find: "let lastStack = '';",
    replace: "let lastStack = '';\nlet lastErrorLines = [];",
  },
  {
    purpose: "remember only errors of this call",
    find: "const inputPtr = await wllamaMalloc(toSizeT(argEncodedMsg.byteLength), 0);",
    replace:
      "lastErrorLines = [];\n    const inputPtr = await wllamaMalloc(toSizeT(argEncodedMsg.byteLength), 0);",
  },
  {
    purpose: "share the memory with the main thread",
    find: "patchHeapFS();",
    replace: `patchHeapFS();
        if (globalThis.SharedArrayBuffer && Module.wasmMemory.buffer instanceof SharedArrayBuffer) msg({ verb: '${MEMORY_VERB}', args: [Module.wasmMemory] });`,
  },
  {
    purpose: "recognize actions without a step",
    find: "const argAction = args[0];",
    replace: `const withoutStep = args[0].endsWith('${WITHOUT_STEP_SUFFIX}');
  const argAction = withoutStep ? args[0].slice(0, -${WITHOUT_STEP_SUFFIX.length}) : args[0];`,
  },
  {
    // A C++ exception results in a null pointer, which wllama would use as the address of the answer.
    purpose: "answer a C++ exception with an error of this call",
    find: "const outputPtr = await wllamaAction(argAction, inputPtr);",
    replace: `getHeapU8()[${MEMORY_CELLS.holdStep}] = withoutStep ? 1 : 0;
    const outputPtr = await wllamaAction(argAction, inputPtr);
    if (!outputPtr) {
      msg({ callbackId, err: { name: 'CppException', message: lastErrorLines.join('\\n') || 'unknown error' } });
      return;
    }`,
  },
  {
    purpose: "turn off llama.cpp's prompt cache",
    find: "// copy data to wasm heap",
    replace: `if (argAction === 'load') {
      const data = new Int32Array(getHeapU8().buffer, 0, ${STATIC_DATA_BYTES / 4});
      const isSetting = (at) => ${NEIGHBORING_SETTINGS.map(([offset, value]) => `data[at + ${offset}] === ${value}`).join(" && ")};
      const settings = [];
      for (let at = 0; (at = data.indexOf(${PROMPT_CACHE_DEFAULT}, at + 1)) > 0; ) if (isSetting(at)) settings.push(at);
      if (settings.length !== 1) {
        msg({ callbackId, err: { message: 'this version of @wllama/wllama is not supported: settings have moved ' + settings } });
        return;
      }
      data[settings[0]] = 0;
    }
    // copy data to wasm heap`,
  },
  {
    // llama.cpp reads a tensor in one call, so a large tensor would be in JavaScript memory completely.
    purpose: "read model files in chunks",
    find: "const _wllama_js_file_read = async (path, offset, req_size, out_ptr) => {",
    replace: `const _wllama_js_file_read = async (path, offset, req_size, out_ptr) => {
  let done = 0;
  while (done < req_size) {
    const size = Math.min(req_size - done, ${FILE_CHUNK_BYTES});
    const got = Number(await readFileChunk(path, offset + done, size, out_ptr + done));
    done += got;
    if (got < size) break;
  }
  return toSizeT(done);
};
const readFileChunk = async (path, offset, req_size, out_ptr) => {`,
  },
];

/** Maximum heap of the stock WASM in @wllama/wllama: 65,536 pages of 64 KiB. */
export const STOCK_HEAP_BYTES = 4 * 1024 ** 3;

const PAGE_BYTES = 64 * 1024;

/** Initial heap in llama.cpp's script. */
const INITIAL_HEAP_BYTES = 128 * 1024 ** 2;

/**
 * Rounds the heap limit of an engine up to full pages, within the limit of the WASM.
 * @param wasmLimitBytes maximum heap that the WASM declares
 */
export function engineHeapLimit(bytes: number, wasmLimitBytes: number): number {
  const pages = Math.ceil(bytes / PAGE_BYTES);
  // wllama requires the limit to be larger than the initial heap.
  const minPages = INITIAL_HEAP_BYTES / PAGE_BYTES + 1;
  return Math.min(wasmLimitBytes, Math.max(minPages, pages) * PAGE_BYTES);
}

/**
 * Returns patches of llama.cpp's script, in the worker and its threads, for another heap limit than the stock one. A
 * WebAssembly memory may have a lower limit than its module declares, so each engine can have its own.
 */
export function moduleHeapPatches(heapBytes: number): readonly TextPatch[] {
  if (heapBytes === STOCK_HEAP_BYTES) return [];
  return [
    {
      purpose: "declare the heap limit",
      find: `maximum:${STOCK_HEAP_BYTES / PAGE_BYTES}n`,
      replace: `maximum:${heapBytes / PAGE_BYTES}n`,
    },
    {
      purpose: "let the heap grow to its limit",
      find: `getHeapMax=()=>${STOCK_HEAP_BYTES}`,
      replace: `getHeapMax=()=>${heapBytes}`,
    },
  ];
}

/** Returns patches of wllama's part of the worker's script for another heap limit. */
export function workerHeapPatches(heapBytes: number): readonly TextPatch[] {
  if (heapBytes === STOCK_HEAP_BYTES) return [];
  return [
    {
      purpose: "create a memory with this limit",
      find: `let maxBytes = ${STOCK_HEAP_BYTES / 1024 ** 2} * 1024 * 1024;`,
      replace: `let maxBytes = ${heapBytes};`,
    },
  ];
}

/** Environment that runs wllama's scripts: a Node process or a page. */
export interface WorkerHost {
  readonly heapLimitBytes: number;
  /** Patches of llama.cpp's script, in the worker and in its threads. */
  readonly modulePatches: readonly TextPatch[];
  /** Patches of wllama's part of the worker's script. */
  readonly workerPatches: readonly TextPatch[];
  readScript(url: string): Promise<string>;
  /** Converts the script of threads to the form in which llama.cpp starts them in this environment. */
  threadScript(script: string): unknown;
  /** Runs a script in a worker, and passes the messages of the worker to the shim. */
  run(script: string, shim: EngineWorker): Pick<EngineWorker, "postMessage" | "terminate">;
}

/**
 * Starts wllama's worker with patched scripts. Messages are queued until the worker has started.
 * @param scriptUrl blob URL of wllama's script, which is revoked
 * @param patch changes that script; throws if it is not the expected one
 */
export function startPatchedWorker(
  scriptUrl: string,
  patch: (script: string) => string,
  host: WorkerHost,
): EngineWorker {
  const queue: { message: unknown; transfer: ArrayBuffer[] }[] = [];
  let isEnded = false;
  const shim: EngineWorker = {
    postMessage: (message, options) => queue.push({ message, transfer: options?.transfer ?? [] }),
    terminate: () => (isEnded = true),
    onMessage: () => {},
    onError: () => {},
  };
  const modulePatches = [...moduleHeapPatches(host.heapLimitBytes), ...host.modulePatches];
  const workerPatches = [...workerHeapPatches(host.heapLimitBytes), ...host.workerPatches];
  const patchThread = (script: string): unknown => host.threadScript(applyPatches(script, modulePatches));
  const start = async (): Promise<void> => {
    const script = await host.readScript(scriptUrl);
    URL.revokeObjectURL(scriptUrl);
    const patched = applyPatches(patch(script), [...modulePatches, ...workerPatches]);
    if (isEnded) return;
    const worker = host.run(patched, shim);
    shim.terminate = () => worker.terminate();
    // Only queued messages can contain a script: module.init has it, and wllama waits for the answer to that.
    for (const { message, transfer } of queue) {
      worker.postMessage(await withPatchedThreads(message, patchThread), { transfer });
    }
    shim.postMessage = (message, options) => worker.postMessage(message, options);
  };
  start().catch((error: unknown) => shim.onError(toError(error)));
  return shim;
}

/** Patches the script of threads in a message of wllama, which sends it as a Blob. */
async function withPatchedThreads(message: unknown, patch: (script: string) => unknown): Promise<unknown> {
  if (!hasArguments(message) || !message.args.some((arg) => arg instanceof Blob)) return message;
  const args = message.args.map(async (arg) => (arg instanceof Blob ? patch(await arg.text()) : arg));
  return { ...message, args: await Promise.all(args) };
}

function hasArguments(message: unknown): message is { args: readonly unknown[] } {
  return typeof message === "object" && message !== null && "args" in message && Array.isArray(message.args);
}
