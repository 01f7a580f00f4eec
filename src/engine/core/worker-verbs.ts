import { ADDRESSES } from "../../../wasm/llama-cpp-build.ts";
import { MEMORY_CELLS } from "../../../wasm/memory-cells.ts";
import { MAX_ADAPTERS } from "../protocol/generation.ts";
import type { TextPatch } from "./worker-patches.ts";

/** Verb that we add to the worker: its arguments are the name of a function in `slotActions` below, and that function's. */
export const SLOTS_VERB = "daybreak.slots";

/** Name of the error for the stock WASM, which cannot save a slot. */
export const NO_SLOTS = "NoSlots";

/** What an action returns when the heap has no room; wasm/kernels/slot-state.h has the numbers of other reasons. */
export const NO_MEMORY = -7;
/** And when a state is larger than it may be. */
export const TOO_LARGE = -8;

/** Room behind a state, for what the number of slots adds to it: a number for each, twice. */
const SPARE_BYTES = 1024;

/**
 * Lets the worker save and restore slots with our image's kernels. A state is larger than a message may be, so it stays in the
 * heap while it is read or written in pieces; there is one at a time. The calls go through wllama's queue, because a
 * suspended WASM must not be entered; those that touch a GPU's memory suspend themselves.
 */
export const SLOT_PATCHES: readonly TextPatch[] = [
  {
    purpose: "answer calls for slots",
    find: "if (verb === 'wllama.debug') {",
    replace: `if (verb === '${SLOTS_VERB}') {
    await runWasmCall(callbackId, async () => {
      try {
        msg({ callbackId, result: await slotActions[args[0]](...args.slice(1)) });
      } catch (err) {
        if (err.name === '${NO_SLOTS}') msg({ callbackId, err: { name: err.name, message: err.message } });
        else if (err instanceof WebAssembly.Exception)
          msg({ callbackId, err: { name: 'CppException', message: 'a slot could not be read or written' } });
        else handleError(err);
      }
    });
    return;
  }

  if (verb === 'wllama.debug') {`,
  },
  {
    purpose: "define the functions for slots",
    find: "const runAction = async (data) => {",
    replace: `let heldState;

const dropState = () => {
  if (heldState) Module.wasmExports.free(heldState.pointer);
  heldState = undefined;
};

/** Room for a state in place of the one before; false: the heap has none. */
const holdState = (bytes) => {
  dropState();
  const pointer = Module.wasmExports.malloc(bytes + ${SPARE_BYTES});
  if (pointer) heldState = { pointer, bytes };
  return Boolean(pointer);
};

const slotKernel = (name) => {
  const kernel = Module.plainExports['daybreak_slot_' + name];
  if (!kernel) throw Object.assign(new Error('this WASM cannot save slots'), { name: '${NO_SLOTS}' });
  const suspends = WebAssembly.promising ? WebAssembly.promising(kernel) : kernel;
  return async (...args) => Number(await suspends(...args));
};

/** Room for numbers of 32 bits. */
const withTokens = async (count, use) => {
  const pointer = Module.wasmExports.malloc(count * 4 + 4);
  if (!pointer) return ${NO_MEMORY};
  try {
    return await use(pointer);
  } finally {
    Module.wasmExports.free(pointer);
  }
};

const slotActions = {
  list: async (count) => {
    const slots = [];
    for (let slot = 0; slot < count; slot++) {
      const ask = (what) => slotKernel(what)(slot);
      slots.push({ tokens: await ask('tokens'), isBusy: (await ask('is_busy')) !== 0, lastUsed: await ask('last_used') });
    }
    return slots;
  },
  save: async (slot, most) => {
    const bytes = await slotKernel('size')(slot);
    const length = await slotKernel('tokens')(slot);
    if (bytes < 0) return bytes;
    if (bytes > most) return ${TOO_LARGE};
    if (!holdState(bytes)) return ${NO_MEMORY};
    return await withTokens(length, async (pointer) => {
      const written = await slotKernel('save')(slot, BigInt(pointer), BigInt(heldState.pointer), BigInt(bytes));
      if (written < 0) return written;
      heldState.bytes = written;
      const tokens = new Int32Array(getHeapU8().buffer, pointer, length).slice();
      const scales = await withTokens(${MAX_ADAPTERS}, async (list) => {
        const count = await slotKernel('scales')(slot, BigInt(list), ${MAX_ADAPTERS});
        return [...new Float32Array(getHeapU8().buffer, list, Math.max(0, count))];
      });
      return { bytes: written, tokens, scales };
    });
  },
  read: (offset, length) => {
    const from = Math.min(offset, heldState ? heldState.bytes : 0);
    const until = Math.min(offset + length, heldState ? heldState.bytes : 0);
    return heldState ? getHeapU8().slice(heldState.pointer + from, heldState.pointer + until) : new Uint8Array(0);
  },
  begin: (bytes) => (holdState(bytes) ? 0 : ${NO_MEMORY}),
  write: (offset, data) => {
    if (!heldState || offset + data.length > heldState.bytes) return ${NO_MEMORY};
    getHeapU8().set(data, heldState.pointer + offset);
    return 0;
  },
  restore: async (slot, tokens, scales) => {
    if (!heldState) return ${NO_MEMORY};
    const adapted = await withTokens(scales.length, async (list) => {
      new Float32Array(getHeapU8().buffer, list, scales.length).set(scales);
      return await slotKernel('adapt')(slot, BigInt(list), scales.length);
    });
    if (adapted < 0) return adapted;
    const { pointer: state, bytes } = heldState;
    const result = await withTokens(tokens.length, async (pointer) => {
      new Int32Array(getHeapU8().buffer, pointer, tokens.length).set(tokens);
      return await slotKernel('restore')(slot, BigInt(pointer), tokens.length, BigInt(state), BigInt(bytes));
    });
    dropState();
    return result;
  },
  erase: async (slot) => await slotKernel('erase')(slot),
  reserve: async (slot) => await slotKernel('reserve')(slot),
  release: async (slot) => await slotKernel('release')(slot),
  drop: () => {
    dropState();
    return 0;
  },
};

const runAction = async (data) => {`,
  },
];

/** Verbs that we add to the worker. */
export const TOKENIZE_VERB = "daybreak.tokenize";
export const PIECES_VERB = "daybreak.pieces";

/** Name of the error for the stock WASM, which does not export its tokenizer. */
export const NO_TOKENIZER = "NoTokenizer";

/** Tokens in addition to one per byte: those that begin and end a text, and a leading space. */
const EXTRA_TOKENS = 16;

/** Initial buffer per token; it grows when necessary. */
const PIECE_BYTES = 8;

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

/** Verb that we add to the worker: its arguments are the name of a function in `givenTokens` below, and that function's. */
export const GIVEN_VERB = "daybreak.given";

/** Of given_tokens in wasm/kernels/given-tokens.h. */
const FIELDS = { next: 0, number: 8, count: 12, at: 16, oneByOne: 20, tokens: 24 } as const;

/**
 * Lets the worker give answers tokens to begin with, in lists that our kernels read; with the stock WASM nobody reads them. The
 * calls go through wllama's queue, because a suspended WASM must not be entered.
 */
export const GIVEN_TOKEN_PATCHES: readonly TextPatch[] = [
  {
    purpose: "answer calls for given tokens",
    find: "if (verb === 'wllama.debug') {",
    replace: `if (verb === '${GIVEN_VERB}') {
    await runWasmCall(callbackId, () => {
      try {
        msg({ callbackId, result: givenTokens[args[0]](...args.slice(1)) });
      } catch (err) {
        handleError(err);
      }
    });
    return;
  }

  if (verb === 'wllama.debug') {`,
  },
  {
    purpose: "define the functions for given tokens",
    find: "const runAction = async (data) => {",
    replace: `const heapView = () => new DataView(getHeapU8().buffer);

const givenTokens = {
  /** False: the heap has no room for them. */
  give: (number, tokens, oneByOne) => {
    const list = Module.wasmExports.malloc(${FIELDS.tokens} + 4 * tokens.length);
    if (!list) return false;
    const view = heapView();
    view.setBigUint64(list + ${FIELDS.next}, view.getBigUint64(${MEMORY_CELLS.givenTokens}, true), true);
    view.setInt32(list + ${FIELDS.number}, number, true);
    view.setInt32(list + ${FIELDS.count}, tokens.length, true);
    view.setInt32(list + ${FIELDS.at}, 0, true);
    view.setInt32(list + ${FIELDS.oneByOne}, oneByOne ? 1 : 0, true);
    new Int32Array(view.buffer, list + ${FIELDS.tokens}, tokens.length).set(tokens);
    view.setBigUint64(${MEMORY_CELLS.givenTokens}, BigInt(list), true);
    return true;
  },
  /** Takes away what a request has been given. */
  take: (number) => {
    const view = heapView();
    let link = ${MEMORY_CELLS.givenTokens};
    for (;;) {
      const list = Number(view.getBigUint64(link, true));
      if (!list) return false;
      if (view.getInt32(list + ${FIELDS.number}, true) === number) {
        view.setBigUint64(link, view.getBigUint64(list + ${FIELDS.next}, true), true);
        Module.wasmExports.free(list);
        return true;
      }
      link = list + ${FIELDS.next};
    }
  },
};

const runAction = async (data) => {`,
  },
];
