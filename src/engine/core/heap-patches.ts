import type { TextPatch } from "./worker-patches.ts";

/** Largest heap of llama.cpp's WebAssembly as @wllama/wllama ships it: 65,536 pages of 64 KiB. */
export const STOCK_HEAP_BYTES = 4 * 1024 ** 3;

const PAGE_BYTES = 64 * 1024;

/**
 * Changes of llama.cpp's own script, in the worker and in each of its threads, for WASM that declares another largest
 * heap than the stock one: both have to say the same.
 */
export function moduleHeapPatches(heapBytes: number): readonly TextPatch[] {
  if (heapBytes === STOCK_HEAP_BYTES) return [];
  return [
    {
      purpose: "declare the larger memory",
      find: `maximum:${STOCK_HEAP_BYTES / PAGE_BYTES}n`,
      replace: `maximum:${heapBytes / PAGE_BYTES}n`,
    },
    {
      purpose: "let the heap grow further",
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
      purpose: "make the larger memory",
      find: `let maxBytes = ${STOCK_HEAP_BYTES / 1024 ** 2} * 1024 * 1024;`,
      replace: `let maxBytes = ${heapBytes};`,
    },
  ];
}
