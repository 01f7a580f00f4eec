import type { EngineSpec } from "../protocol/engine-spec.ts";
import type { GpuAdapter } from "./gpu-report.ts";
import type { GpuModel } from "./gpu-memory.ts";

/** llama.cpp's default; larger steps are hardly faster. */
const GPU_STEP = 512;

/** Larger steps are not faster on a software adapter. */
const SOFTWARE_STEP = 16;

/** Weights times tokens that a software adapter computes per second, at least. */
const SOFTWARE_WEIGHT_TOKENS = 0.8e9;

/** Cancellation and the tokens of other slots wait for a whole step. */
const MAX_STEP_SECONDS = 10;

/**
 * Prompt tokens per step on a GPU; undefined when the adapter is so slow that even the smallest possible step takes too
 * long.
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
  // A text to embed or rerank cannot be split.
  const whole = purpose === "generate" ? undefined : batchSize;
  // Decoding comes first, so a step must have room for more tokens than there are slots.
  const least = whole ?? slots + 1;
  if (!software) return whole ?? Math.max(least, Math.min(GPU_STEP, contextSize));
  const acceptable = Math.floor((SOFTWARE_WEIGHT_TOKENS * MAX_STEP_SECONDS) / Math.max(1, parameters));
  if (acceptable < least) return undefined;
  return whole ?? Math.max(least, Math.min(SOFTWARE_STEP, acceptable, contextSize));
}
