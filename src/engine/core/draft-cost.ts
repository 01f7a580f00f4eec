import { MEMORY_CELLS } from "../../../wasm/memory-cells.ts";
import type { BlobLike } from "./platform.ts";
import type { TextPatch } from "./worker-patches.ts";

/** A larger one is no help in any case. */
const MOST = 1000;

/**
 * Tells our kernels what a step of the draft model costs, in hundredths of one of the model, until they have measured it
 * (wasm/kernels/step-costs.h). A step of one token reads all weights, so that files tell it, unless the model is a mixture of
 * experts, which reads fewer.
 */
export function draftCostPatch(model: readonly BlobLike[], draft: BlobLike): TextPatch {
  const bytes = model.reduce((sum, { size }) => sum + size, 0);
  const cost = Math.min(MOST, Math.ceil((100 * draft.size) / bytes));
  return {
    purpose: "tell what a step of the draft model costs",
    find: "if (argAction === 'load') {",
    replace: `if (argAction === 'load') {
      new DataView(getHeapU8().buffer).setFloat32(${MEMORY_CELLS.costOfDraft}, ${cost}, true);`,
  };
}
