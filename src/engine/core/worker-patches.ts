import { MEMORY_CELLS } from "../../../wasm/memory-cells.ts";

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
