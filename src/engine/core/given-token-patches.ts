import { MEMORY_CELLS } from "../../../wasm/memory-cells.ts";
import type { TextPatch } from "./worker-patches.ts";

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
