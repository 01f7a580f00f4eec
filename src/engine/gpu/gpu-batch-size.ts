import type { EngineSpec } from "../protocol/engine-spec.ts";
import type { GpuAdapter } from "./gpu-report.ts";
import type { GpuModel } from "./gpu-memory.ts";

/** What llama.cpp uses by default: a GPU's matrix shaders gain little beyond. */
const GPU_STEP = 512;

/** Larger steps on a software adapter gain nothing. */
const SOFTWARE_STEP = 16;

/**
 * Weights times tokens that a software adapter gets through in a second, at the least: lavapipe on two cores takes
 * less than 10 s for 16 tokens of a model of 500 million weights.
 */
const SOFTWARE_WEIGHT_TOKENS = 0.8e9;

/** A cancel waits for one step, and so do the tokens of the other slots; others may use the machine as well. */
const LONGEST_STEP_SECONDS = 10;

/**
 * Prompt tokens for one step on a GPU; undefined when an adapter is so slow that the smallest step that there can be
 * takes too long.
 */
export function gpuBatchSize(
  { software }: Pick<GpuAdapter, "software">,
  { parameters }: Pick<GpuModel, "parameters">,
  {
    purpose,
    contextSize,
    slots,
    batchSize,
  }: Pick<EngineSpec, "purpose" | "contextSize" | "slots" | "batchSize">,
): number | undefined {
  // A text that is embedded cannot be split.
  const whole = purpose === "generate" ? undefined : batchSize;
  // Generating slots are served first, so a step must hold more tokens than there are slots.
  const least = whole ?? slots + 1;
  if (!software) return whole ?? Math.max(least, Math.min(GPU_STEP, contextSize));
  const bearable = Math.floor((SOFTWARE_WEIGHT_TOKENS * LONGEST_STEP_SECONDS) / Math.max(1, parameters));
  if (bearable < least) return undefined;
  return whole ?? Math.max(least, Math.min(SOFTWARE_STEP, bearable, contextSize));
}
