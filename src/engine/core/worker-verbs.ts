import { ADDRESSES } from "../../../wasm/llama-cpp-build.ts";
import { MEMORY_CELLS } from "../../../wasm/memory-cells.ts";
import { MAX_ADAPTERS } from "../protocol/generation.ts";
import type { TextPatch } from "./worker-patches.ts";

/** Worker verb that calls a function of `slotActions` below. Arguments: the function's name, then its arguments. */
export const SLOTS_VERB = "daybreak.slots";

/** Name of the worker's error for the stock WASM, which does not export the called function. */
export const STOCK_WASM_ERROR = "StockWasm";

/** Result of an action if the heap is full. wasm/kernels/slot-state.h defines the other error numbers. */
export const NO_MEMORY = -7;
/** Result of an action if a state exceeds the requested maximum. */
export const TOO_LARGE = -8;

/**
 * Additional bytes of a buffer. The exact size of a state also depends on the number of slots, by two numbers per slot.
 */
const SPARE_BYTES = 1024;

/**
 * Functions of the worker that save and restore slots with our image's kernels. A state exceeds the size of a message, so
 * it is buffered in the heap while it is transferred in chunks. There is one such buffer. Calls that access a GPU's memory
 * are suspended themselves.
 */
const SLOT_FUNCTIONS = `let stateBuffer;

const dropState = () => {
  if (stateBuffer) Module.wasmExports.free(stateBuffer.pointer);
  stateBuffer = undefined;
};

/** Allocates a buffer for a state and frees the previous one. Returns false if the heap is full. */
const allocateState = (bytes) => {
  dropState();
  const pointer = Module.wasmExports.malloc(bytes + ${SPARE_BYTES});
  if (pointer) stateBuffer = { pointer, bytes };
  return Boolean(pointer);
};

const slotKernel = (name) => {
  const kernel = Module.plainExports['daybreak_slot_' + name];
  if (!kernel) throw Object.assign(new Error('this WASM cannot save slots'), { name: '${STOCK_WASM_ERROR}' });
  const suspends = WebAssembly.promising ? WebAssembly.promising(kernel) : kernel;
  return async (...args) => Number(await suspends(...args));
};

/** Runs a function with memory for 32-bit numbers. */
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
      const read = (name) => slotKernel(name)(slot);
      slots.push({ tokens: await read('tokens'), isBusy: (await read('is_busy')) !== 0, lastUsed: await read('last_used') });
    }
    return slots;
  },
  save: async (slot, maxBytes) => {
    const bytes = await slotKernel('size')(slot);
    const length = await slotKernel('tokens')(slot);
    if (bytes < 0) return bytes;
    if (bytes > maxBytes) return ${TOO_LARGE};
    if (!allocateState(bytes)) return ${NO_MEMORY};
    return await withTokens(length, async (pointer) => {
      const written = await slotKernel('save')(slot, BigInt(pointer), BigInt(stateBuffer.pointer), BigInt(bytes));
      if (written < 0) return written;
      stateBuffer.bytes = written;
      const tokens = new Int32Array(getHeapU8().buffer, pointer, length).slice();
      const scales = await withTokens(${MAX_ADAPTERS}, async (list) => {
        const count = await slotKernel('scales')(slot, BigInt(list), ${MAX_ADAPTERS});
        return [...new Float32Array(getHeapU8().buffer, list, Math.max(0, count))];
      });
      return { bytes: written, tokens, scales };
    });
  },
  read: (offset, length) => {
    const from = Math.min(offset, stateBuffer ? stateBuffer.bytes : 0);
    const until = Math.min(offset + length, stateBuffer ? stateBuffer.bytes : 0);
    return stateBuffer ? getHeapU8().slice(stateBuffer.pointer + from, stateBuffer.pointer + until) : new Uint8Array(0);
  },
  begin: (bytes) => (allocateState(bytes) ? 0 : ${NO_MEMORY}),
  write: (offset, data) => {
    if (!stateBuffer || offset + data.length > stateBuffer.bytes) return ${NO_MEMORY};
    getHeapU8().set(data, stateBuffer.pointer + offset);
    return 0;
  },
  restore: async (slot, tokens, scales) => {
    if (!stateBuffer) return ${NO_MEMORY};
    const adapted = await withTokens(scales.length, async (list) => {
      new Float32Array(getHeapU8().buffer, list, scales.length).set(scales);
      return await slotKernel('adapt')(slot, BigInt(list), scales.length);
    });
    if (adapted < 0) return adapted;
    const { pointer: state, bytes } = stateBuffer;
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
`;

export const TOKENIZE_VERB = "daybreak.tokenize";
export const PIECES_VERB = "daybreak.pieces";

/** Maximum tokens of a text in addition to one per byte: BOS, EOS and a leading space. */
const EXTRA_TOKENS = 16;

/** Initial buffer per token, which grows if necessary. */
const PIECE_BYTES = 8;

/** Functions of the worker that call llama.cpp's tokenizer, which our image exports. */
const TOKENIZER_FUNCTIONS = `const tokenizerOf = () => {
  const { daybreak_tokenize, daybreak_token_to_piece, malloc, free } = Module.wasmExports;
  if (!daybreak_tokenize || !daybreak_token_to_piece) {
    throw Object.assign(new Error('this WASM has no tokenizer'), { name: '${STOCK_WASM_ERROR}' });
  }
  const vocabulary = new BigUint64Array(getHeapU8().buffer, ${ADDRESSES.vocabulary}, 1)[0];
  if (!vocabulary) throw new Error('no model is loaded');
  /** Runs a function with heap memory. The heap may grow meanwhile, so views must be recreated after each call. */
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
        const free = capacity - end;
        const length = tokenToPiece(vocabulary, tokens[index], BigInt(pointer + end), free, 1);
        if (length < 0 || length === free) return undefined;
        ends[index] = end += length;
      }
      return { bytes: getHeapU8().slice(pointer, pointer + end), ends };
    });
  for (let capacity = ${SPARE_BYTES} + tokens.length * ${PIECE_BYTES}; ; capacity *= 4) {
    const pieces = write(capacity);
    if (pieces) return pieces;
  }
};
`;

/** Worker verb that calls a function of `prefixTokens` below. Arguments: the function's name, then its arguments. */
export const PREFIX_TOKENS_VERB = "daybreak.given";

/** Field offsets of `given_tokens` in wasm/kernels/given-tokens.h. */
const LIST_OFFSETS = { next: 0, number: 8, count: 12, at: 16, oneByOne: 20, tokens: 24 } as const;

/**
 * Functions of the worker that store the prefix tokens of answers in linked lists, which our kernels read. The stock WASM
 * ignores them.
 */
const PREFIX_TOKEN_FUNCTIONS = `const heapView = () => new DataView(getHeapU8().buffer);

const prefixTokens = {
  /** Stores the prefix tokens of a request. Returns false if the heap is full. */
  give: (number, tokens, oneByOne) => {
    const list = Module.wasmExports.malloc(${LIST_OFFSETS.tokens} + 4 * tokens.length);
    if (!list) return false;
    const view = heapView();
    view.setBigUint64(list + ${LIST_OFFSETS.next}, view.getBigUint64(${MEMORY_CELLS.givenTokens}, true), true);
    view.setInt32(list + ${LIST_OFFSETS.number}, number, true);
    view.setInt32(list + ${LIST_OFFSETS.count}, tokens.length, true);
    view.setInt32(list + ${LIST_OFFSETS.at}, 0, true);
    view.setInt32(list + ${LIST_OFFSETS.oneByOne}, oneByOne ? 1 : 0, true);
    new Int32Array(view.buffer, list + ${LIST_OFFSETS.tokens}, tokens.length).set(tokens);
    view.setBigUint64(${MEMORY_CELLS.givenTokens}, BigInt(list), true);
    return true;
  },
  /** Removes the prefix tokens of a request. */
  take: (number) => {
    const view = heapView();
    let link = ${MEMORY_CELLS.givenTokens};
    for (;;) {
      const list = Number(view.getBigUint64(link, true));
      if (!list) return false;
      if (view.getInt32(list + ${LIST_OFFSETS.number}, true) === number) {
        view.setBigUint64(link, view.getBigUint64(list + ${LIST_OFFSETS.next}, true), true);
        Module.wasmExports.free(list);
        return true;
      }
      link = list + ${LIST_OFFSETS.next};
    }
  },
};
`;

/**
 * Adds our verbs to the worker. For the stock WASM, which lacks the functions that they call, the worker returns an error.
 * Calls go through wllama's queue, because a suspended WASM must not be entered.
 */
export const VERB_PATCHES: readonly TextPatch[] = [
  {
    purpose: "keep the WASM's exports",
    find: "assignWasmExports(wasmExports);",
    // The script wraps exports. Functions that may suspend can only be made of the original exports.
    replace:
      'assignWasmExports(wasmExports);Module["wasmExports"]=wasmExports;Module["plainExports"]=instance.exports;',
  },
  {
    purpose: "answer our verbs",
    find: "if (verb === 'wllama.debug') {",
    replace: `if (addedVerbs[verb]) {
    await runWasmCall(callbackId, async () => {
      try {
        msg({ callbackId, result: await addedVerbs[verb](...args) });
      } catch (err) {
        if (err.name === '${STOCK_WASM_ERROR}') msg({ callbackId, err: { name: err.name, message: err.message } });
        else if (err instanceof WebAssembly.Exception)
          msg({ callbackId, err: { name: 'CppException', message: verb + ' failed' } });
        else handleError(err);
      }
    });
    return;
  }

  if (verb === 'wllama.debug') {`,
  },
  {
    purpose: "define our verbs",
    find: "const runAction = async (data) => {",
    replace: `${SLOT_FUNCTIONS}
${TOKENIZER_FUNCTIONS}
${PREFIX_TOKEN_FUNCTIONS}
const addedVerbs = {
  '${SLOTS_VERB}': (name, ...args) => slotActions[name](...args),
  '${TOKENIZE_VERB}': tokenize,
  '${PIECES_VERB}': piecesOf,
  '${PREFIX_TOKENS_VERB}': (name, ...args) => prefixTokens[name](...args),
};

const runAction = async (data) => {`,
  },
];
