import { MEMORY_CELLS } from "../../../wasm/memory-cells.ts";
import { toError } from "../../errors/to-error.ts";
import type { EngineWorker } from "./platform.ts";

/** One exact change in a script of wllama. */
export interface TextPatch {
  /** What the change is for; part of the error message when it cannot be applied. */
  readonly purpose: string;
  readonly find: string;
  readonly replace: string;
}

/** The patches were made for another version of the package. */
export class PatchMismatchError extends Error {
  override readonly name = "PatchMismatchError";
}

/**
 * Applies every patch exactly once.
 * @throws PatchMismatchError when a text to replace occurs never or more than once
 */
export function applyPatches(script: string, patches: readonly TextPatch[]): string {
  let patched = script;
  for (const { purpose, find, replace } of patches) {
    const at = patched.indexOf(find);
    if (at < 0 || patched.indexOf(find, at + 1) >= 0) {
      throw new PatchMismatchError(
        `This version of @wllama/wllama is not supported: cannot patch its worker (${purpose}).`,
      );
    }
    patched = patched.slice(0, at) + replace + patched.slice(at + find.length);
  }
  return patched;
}

/** Most bytes of a model file that are in JavaScript memory on the way into the WASM heap. */
const FILE_CHUNK_BYTES = 8 * 1024 * 1024;

/**
 * llama.cpp's server has a prompt cache of up to 8 GiB in addition to the KV cache, and wllama has no parameter for it:
 * an engine would grow with every conversation until its heap is full. The setting (`cache_ram_mib`, an int32 in MiB) is
 * overwritten before the model is loaded. It is found among llama.cpp's static data, by its default and the settings in
 * front of it.
 */
const PROMPT_CACHE_DEFAULT = 8192;
/** `n_ctx_checkpoints`, and after padding `checkpoint_every_nt`: offset in numbers of 32 bits, and default. */
const SETTINGS_AROUND_IT = [
  [-3, 32],
  [-2, 0],
  [-1, 8192],
  [1, 0],
] as const;
/** Static data lies below the stack, which has copies of it. */
const STATIC_BYTES = 4 * 1024 * 1024;

/** Suffix of an action: return what has been computed without computing another step. */
export const HELD = "#held";

/** The worker's message with the memory of the WASM. */
export const MEMORY_VERB = "daybreak.memory";

/** Threads that llama.cpp starts to compute a spectrum of sound, and waits for. */
export const AUDIO_THREADS = 3;

/**
 * For engines that hear: a thread that is not there when llama.cpp waits for it never starts, since only the thread that
 * waits could start it.
 */
export const AUDIO_PATCHES: readonly TextPatch[] = [
  {
    purpose: "have threads for spectra of sound",
    find: "pthreadPoolSize: hasMultithread ? pthreadPoolSize : 0,",
    replace: `pthreadPoolSize: hasMultithread ? Math.max(pthreadPoolSize, ${AUDIO_THREADS}) : 0,`,
  },
];

/** Patches of wllama's worker script for every WASM. Those for the heap limit and the tokenizer are in other files. */
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
    purpose: "know which actions are held",
    find: "const argAction = args[0];",
    replace: `const isHeld = args[0].endsWith('${HELD}');
  const argAction = isHeld ? args[0].slice(0, -${HELD.length}) : args[0];`,
  },
  {
    // A C++ exception results in a null pointer, which wllama would use as the address of the answer.
    purpose: "answer a C++ exception with an error of this call",
    find: "const outputPtr = await wllamaAction(argAction, inputPtr);",
    replace: `getHeapU8()[${MEMORY_CELLS.holdStep}] = isHeld ? 1 : 0;
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
      const data = new Int32Array(getHeapU8().buffer, 0, ${STATIC_BYTES / 4});
      const isSetting = (at) => ${SETTINGS_AROUND_IT.map(([offset, value]) => `data[at + ${offset}] === ${value}`).join(" && ")};
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
    // llama.cpp reads a tensor in one call, so a whole large tensor would be in JavaScript memory.
    purpose: "read model files in pieces",
    find: "const _wllama_js_file_read = async (path, offset, req_size, out_ptr) => {",
    replace: `const _wllama_js_file_read = async (path, offset, req_size, out_ptr) => {
  let done = 0;
  while (done < req_size) {
    const size = Math.min(req_size - done, ${FILE_CHUNK_BYTES});
    const got = Number(await readFilePiece(path, offset + done, size, out_ptr + done));
    done += got;
    if (got < size) break;
  }
  return toSizeT(done);
};
const readFilePiece = async (path, offset, req_size, out_ptr) => {`,
  },
];

/** Largest heap of llama.cpp's WebAssembly as @wllama/wllama ships it: 65,536 pages of 64 KiB. */
export const STOCK_HEAP_BYTES = 4 * 1024 ** 3;

const PAGE_BYTES = 64 * 1024;

/** Initial heap in llama.cpp's script. */
const FIRST_HEAP_BYTES = 128 * 1024 ** 2;

/**
 * Rounds the heap limit of an engine up to whole pages, within what the WASM allows.
 * @param wasmLimitBytes largest heap that the WASM declares
 */
export function engineHeapLimit(bytes: number, wasmLimitBytes: number): number {
  const pages = Math.ceil(bytes / PAGE_BYTES);
  // wllama requires the limit to be larger than the initial heap.
  const least = FIRST_HEAP_BYTES / PAGE_BYTES + 1;
  return Math.min(wasmLimitBytes, Math.max(least, pages) * PAGE_BYTES);
}

/**
 * Patches llama.cpp's script in the worker and its threads for another heap limit than the stock one. A WebAssembly
 * memory may have a lower limit than its module declares, so each engine can have its own.
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

/** Patches wllama's part of the worker's script in the same way. */
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
