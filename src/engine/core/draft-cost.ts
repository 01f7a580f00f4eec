import { MEMORY_CELLS } from "../../../wasm/memory-cells.ts";
import type { BlobLike } from "./platform.ts";
import type { TextPatch } from "./worker-patches.ts";

/** A larger one is no help in any case. */
const MOST = 1000;

/**
 * Tells our kernels what a step of the draft model costs (wasm/kernels/draft-model.h), in hundredths of one of the model. A step
 * of one token reads all weights, so that files tell it; a mixture of experts reads fewer, and its draft model costs more then.
 */
export function draftCostPatch(model: readonly BlobLike[], draft: BlobLike): TextPatch {
  const bytes = model.reduce((sum, { size }) => sum + size, 0);
  const cost = Math.min(MOST, Math.ceil((100 * draft.size) / bytes));
  return {
    purpose: "tell what a step of the draft model costs",
    find: "if (argAction === 'load') {",
    replace: `if (argAction === 'load') {
      new DataView(getHeapU8().buffer).setInt32(${MEMORY_CELLS.costOfDraft}, ${cost}, true);`,
  };
}
