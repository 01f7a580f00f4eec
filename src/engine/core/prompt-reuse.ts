import { MEMORY_CELLS } from "../../../wasm/memory-cells.ts";
import type { EngineSettings } from "./load-parameters.ts";
import type { TextPatch } from "./worker-patches.ts";

/**
 * Turns on the store of prompts in our kernels (wasm/kernels/prompt-store.h), within as many bytes as the engine was given.
 * With the stock WASM, nothing reads these cells.
 */
export function promptReusePatch({
  promptCacheBytes = 0,
  sharedContext,
}: Pick<EngineSettings, "promptCacheBytes" | "sharedContext">): TextPatch {
  return {
    purpose: "give the store of prompts its size",
    find: "if (argAction === 'load') {",
    replace: `if (argAction === 'load') {
      new DataView(getHeapU8().buffer).setBigInt64(${MEMORY_CELLS.promptStoreBytes}, ${promptCacheBytes}n, true);
      getHeapU8()[${MEMORY_CELLS.sharedContext}] = ${sharedContext ? 1 : 0};`,
  };
}
