import { ADDRESSES } from "../../../wasm/llama-cpp-build.ts";
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

/**
 * llama.cpp's server has a prompt cache of up to 8 GiB in addition to the KV cache, and wllama has no parameter for it:
 * an engine would grow with every conversation until its heap is full. The setting (`cache_ram_mib`, an int32 in MiB)
 * is overwritten before the model is loaded, after a check of its old value.
 */
const PROMPT_CACHE_SETTING = { address: ADDRESSES.promptCacheLimit, stock: 8192, ours: 0 } as const;

/** Suffix of an action: return what has been computed without computing another step. */
export const HELD = "#held";

/** The worker's message with the memory of the WASM. */
export const MEMORY_VERB = "daybreak.memory";

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
        if (Module.wasmMemory.buffer instanceof SharedArrayBuffer) msg({ verb: '${MEMORY_VERB}', args: [Module.wasmMemory] });`,
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
      const setting = new Int32Array(getHeapU8().buffer, ${PROMPT_CACHE_SETTING.address}, 1);
      if (setting[0] !== ${PROMPT_CACHE_SETTING.stock}) {
        msg({ callbackId, err: { message: 'this version of @wllama/wllama is not supported: settings have moved' } });
        return;
      }
      setting[0] = ${PROMPT_CACHE_SETTING.ours};
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
