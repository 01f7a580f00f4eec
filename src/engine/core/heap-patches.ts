import type { TextPatch } from "./worker-patches.ts";

/** Largest heap of llama.cpp's WebAssembly as @wllama/wllama ships it: 65,536 pages of 64 KiB. */
export const STOCK_HEAP_BYTES = 4 * 1024 ** 3;

const PAGE_BYTES = 64 * 1024;

/** The heap that llama.cpp's script begins with; WebAssembly wants the largest one to be larger or equal. */
const FIRST_HEAP_BYTES = 128 * 1024 ** 2;

/**
 * The largest heap that an engine can be given for the bytes it should have: whole pages, not less than it begins with.
 * @param wasmLimitBytes largest heap that the WASM declares
 */
export function engineHeapLimit(bytes: number, wasmLimitBytes: number): number {
  const pages = Math.ceil(bytes / PAGE_BYTES);
  // wllama makes no memory that begins as large as it may become.
  const least = FIRST_HEAP_BYTES / PAGE_BYTES + 1;
  return Math.min(wasmLimitBytes, Math.max(least, pages) * PAGE_BYTES);
}

/**
 * Changes of llama.cpp's own script, in the worker and in each of its threads, for a largest heap other than the stock
 * one. WebAssembly takes a memory that may grow to less than the module declares, so each engine has a limit of its
 * own.
 */
export function moduleHeapPatches(heapBytes: number): readonly TextPatch[] {
  if (heapBytes === STOCK_HEAP_BYTES) return [];
  return [
    {
      purpose: "declare how far the memory may grow",
      find: `maximum:${STOCK_HEAP_BYTES / PAGE_BYTES}n`,
      replace: `maximum:${heapBytes / PAGE_BYTES}n`,
    },
    {
      purpose: "let the heap grow as far",
      find: `getHeapMax=()=>${STOCK_HEAP_BYTES}`,
      replace: `getHeapMax=()=>${heapBytes}`,
    },
  ];
}

/** Changes of wllama's part of the worker's script for the same. */
export function workerHeapPatches(heapBytes: number): readonly TextPatch[] {
  if (heapBytes === STOCK_HEAP_BYTES) return [];
  return [
    {
      purpose: "make a memory that may grow as far",
      find: `let maxBytes = ${STOCK_HEAP_BYTES / 1024 ** 2} * 1024 * 1024;`,
      replace: `let maxBytes = ${heapBytes};`,
    },
  ];
}
