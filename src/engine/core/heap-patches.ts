import type { TextPatch } from "./worker-patches.ts";

/** Largest heap of llama.cpp's WebAssembly as @wllama/wllama ships it: 65,536 pages of 64 KiB. */
export const STOCK_HEAP_BYTES = 4 * 1024 ** 3;

const PAGE_BYTES = 64 * 1024;

/** Initial heap in llama.cpp's script. */
const FIRST_HEAP_BYTES = 128 * 1024 ** 2;

/**
 * Rounds the heap limit of an engine up to whole pages, within what the WASM allows.
 * @param wasmLimitBytes largest heap that the WASM declares
 */
export function engineHeapLimit(bytes: number, wasmLimitBytes: number): number {
  const pages = Math.ceil(bytes / PAGE_BYTES);
  // wllama requires the limit to be larger than the initial heap.
  const least = FIRST_HEAP_BYTES / PAGE_BYTES + 1;
  return Math.min(wasmLimitBytes, Math.max(least, pages) * PAGE_BYTES);
}

/**
 * Patches llama.cpp's script in the worker and its threads for another heap limit than the stock one. A WebAssembly
 * memory may have a lower limit than its module declares, so each engine can have its own.
 */
export function moduleHeapPatches(heapBytes: number): readonly TextPatch[] {
  if (heapBytes === STOCK_HEAP_BYTES) return [];
  return [
    {
      purpose: "declare the heap limit",
      find: `maximum:${STOCK_HEAP_BYTES / PAGE_BYTES}n`,
      replace: `maximum:${heapBytes / PAGE_BYTES}n`,
    },
    {
      purpose: "let the heap grow to its limit",
      find: `getHeapMax=()=>${STOCK_HEAP_BYTES}`,
      replace: `getHeapMax=()=>${heapBytes}`,
    },
  ];
}

/** Patches wllama's part of the worker's script in the same way. */
export function workerHeapPatches(heapBytes: number): readonly TextPatch[] {
  if (heapBytes === STOCK_HEAP_BYTES) return [];
  return [
    {
      purpose: "create a memory with this limit",
      find: `let maxBytes = ${STOCK_HEAP_BYTES / 1024 ** 2} * 1024 * 1024;`,
      replace: `let maxBytes = ${heapBytes};`,
    },
  ];
}
