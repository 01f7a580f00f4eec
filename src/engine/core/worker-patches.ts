import { ADDRESSES } from "../../../wasm/llama-cpp-build.ts";
import { MEMORY_CELLS } from "../../../wasm/memory-cells.ts";

/** One exact change of a script of wllama's. */
export interface TextPatch {
  /** Why the change is needed; part of the message when it no longer fits. */
  readonly purpose: string;
  readonly find: string;
  readonly replace: string;
}

/** The package is not the one these patches were made for. */
export class PatchMismatchError extends Error {
  override readonly name = "PatchMismatchError";
}

/**
 * Applies every patch exactly once.
 * @throws PatchMismatchError when a text to be replaced occurs never or more than once.
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

/** Most bytes of a model file that are in JavaScript's memory at once on their way into the WASM heap. */
const FILE_CHUNK_BYTES = 8 * 1024 * 1024;

/**
 * llama.cpp's server keeps the KV state of past prompts in memory, up to 8 GiB, and wllama offers no parameter
 * for it: an engine would grow with every conversation until its heap is full. The setting (`cache_ram_mib`, an
 * int32 in MiB) is written before the model is loaded; what is found there is checked first. Prompts are still reused from the KV cache itself.
 */
const PROMPT_CACHE_SETTING = { address: ADDRESSES.promptCacheLimit, stock: 8192, ours: 0 } as const;

/** Behind the name of an action: answer from what has been computed, without computing the next step. */
export const HELD = "#held";

/** The worker's message that brings the memory of the WASM. */
export const MEMORY_VERB = "daybreak.memory";

/**
 * What wllama's worker script needs with every WASM. What ours needs besides, for its larger heap and its tokenizer,
 * has lists of its own.
 */
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
    purpose: "declare what is remembered",
    find: "let lastStack = '';",
    replace: "let lastStack = '';\nlet lastErrorLines = [];",
  },
  {
    purpose: "remember errors of this call alone",
    find: "const inputPtr = await wllamaMalloc(toSizeT(argEncodedMsg.byteLength), 0);",
    replace:
      "lastErrorLines = [];\n    const inputPtr = await wllamaMalloc(toSizeT(argEncodedMsg.byteLength), 0);",
  },
  {
    purpose: "share the memory with who drives the worker",
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
    // A C++ exception comes back as a null pointer, which wllama would read as the answer's address.
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
    purpose: "switch off llama.cpp's own store of past prompts",
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
    // llama.cpp reads a tensor in one call, so a large one would be in JavaScript's memory as a whole.
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
