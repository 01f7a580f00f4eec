import { ADDRESSES } from "../../../wasm/llama-cpp-build.ts";
import type { TextPatch } from "./worker-patches.ts";

/** Verbs that we add to the worker. */
export const TOKENIZE_VERB = "daybreak.tokenize";
export const PIECES_VERB = "daybreak.pieces";

/** Name of the error for the stock WASM, which does not export its tokenizer. */
export const NO_TOKENIZER = "NoTokenizer";

/** Tokens in addition to one per byte: those that begin and end a text, and a leading space. */
const EXTRA_TOKENS = 16;

/** Initial buffer per token; it grows when necessary. */
const PIECE_BYTES = 8;

/** Additional initial buffer, since a few tokens may all be long. */
const SPARE_BYTES = 1024;

/**
 * Lets the worker call llama.cpp's tokenizer, which our image exports; for the stock WASM the worker returns an error.
 * The calls go through wllama's queue, because a suspended WASM must not be entered.
 */
export const TOKENIZER_PATCHES: readonly TextPatch[] = [
  {
    purpose: "keep the WASM's exports",
    find: "assignWasmExports(wasmExports);",
    // The script wraps them; of plain ones, functions can be made that may suspend.
    replace:
      'assignWasmExports(wasmExports);Module["wasmExports"]=wasmExports;Module["plainExports"]=instance.exports;',
  },
  {
    purpose: "answer calls of the tokenizer",
    find: "if (verb === 'wllama.debug') {",
    replace: `if (verb === '${TOKENIZE_VERB}' || verb === '${PIECES_VERB}') {
    await runWasmCall(callbackId, async () => {
      try {
        const result = verb === '${TOKENIZE_VERB}' ? tokenize(...args) : piecesOf(...args);
        msg({ callbackId, result });
      } catch (err) {
        if (err.name === '${NO_TOKENIZER}') msg({ callbackId, err: { name: err.name, message: err.message } });
        else if (err instanceof WebAssembly.Exception)
          msg({ callbackId, err: { name: 'CppException', message: 'the tokenizer failed' } });
        else handleError(err);
      }
    });
    return;
  }

  if (verb === 'wllama.debug') {`,
  },
  {
    purpose: "define the functions that call the tokenizer",
    find: "const runAction = async (data) => {",
    replace: `const tokenizerOf = () => {
  const { daybreak_tokenize, daybreak_token_to_piece, malloc, free } = Module.wasmExports;
  if (!daybreak_tokenize || !daybreak_token_to_piece) {
    throw Object.assign(new Error('this WASM has no tokenizer'), { name: '${NO_TOKENIZER}' });
  }
  const vocabulary = new BigUint64Array(getHeapU8().buffer, ${ADDRESSES.vocabulary}, 1)[0];
  if (!vocabulary) throw new Error('no model is loaded');
  /** Runs with some memory of the heap, which may grow meanwhile: views are made anew after each call. */
  const withMemory = (bytes, use) => {
    const pointer = malloc(bytes);
    if (!pointer) throw new Error('out of memory');
    try {
      return use(pointer);
    } finally {
      free(pointer);
    }
  };
  return { tokenize: daybreak_tokenize, tokenToPiece: daybreak_token_to_piece, vocabulary, withMemory };
};

const tokenize = (text, addSpecial, parseSpecial) => {
  const { tokenize, vocabulary, withMemory } = tokenizerOf();
  return withMemory(text.length + 1, (textPointer) => {
    getHeapU8().set(text, textPointer);
    const attempt = (capacity) =>
      withMemory(capacity * 4, (pointer) => {
        const count = tokenize(
          vocabulary, BigInt(textPointer), text.length, BigInt(pointer), capacity, addSpecial ? 1 : 0, parseSpecial ? 1 : 0,
        );
        return count < 0 ? -count : new Int32Array(getHeapU8().buffer, pointer, count).slice();
      });
    const first = attempt(text.length + ${EXTRA_TOKENS});
    return typeof first === 'number' ? attempt(first) : first;
  });
};

const piecesOf = (tokens) => {
  const { tokenToPiece, vocabulary, withMemory } = tokenizerOf();
  const ends = new Int32Array(tokens.length);
  const write = (capacity) =>
    withMemory(capacity, (pointer) => {
      let end = 0;
      for (let index = 0; index < tokens.length; index++) {
        const room = capacity - end;
        const length = tokenToPiece(vocabulary, tokens[index], BigInt(pointer + end), room, 1);
        if (length < 0 || length === room) return undefined;
        ends[index] = end += length;
      }
      return { bytes: getHeapU8().slice(pointer, pointer + end), ends };
    });
  for (let capacity = ${SPARE_BYTES} + tokens.length * ${PIECE_BYTES}; ; capacity *= 4) {
    const pieces = write(capacity);
    if (pieces) return pieces;
  }
};

const runAction = async (data) => {`,
  },
];
