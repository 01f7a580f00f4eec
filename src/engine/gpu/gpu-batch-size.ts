import type { GpuAdapter } from "./gpu-report.ts";

/** What llama.cpp uses by default: a GPU's matrix shaders gain little beyond. */
const GPU_STEP = 512;

/**
 * A software adapter gets through a hundredth of what a GPU does, and a step that takes over 30 seconds makes
 * llama.cpp give the device up. With this many tokens the step of a model of 500 million weights stays below 10 s.
 */
const SOFTWARE_STEP = 16;

/**
 * Prompt tokens for one step on a GPU.
 * @param slots generating slots are served first, so a step must hold more tokens than there are slots
 */
export function gpuBatchSize(
  { software }: Pick<GpuAdapter, "software">,
  contextSize: number,
  slots: number,
): number {
  return Math.max(slots + 1, Math.min(software ? SOFTWARE_STEP : GPU_STEP, contextSize));
}
