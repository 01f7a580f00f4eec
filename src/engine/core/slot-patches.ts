import { MOST_ADAPTERS } from "../protocol/generation.ts";
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
      const scales = await withTokens(${MOST_ADAPTERS}, async (list) => {
        const count = await slotKernel('scales')(slot, BigInt(list), ${MOST_ADAPTERS});
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
