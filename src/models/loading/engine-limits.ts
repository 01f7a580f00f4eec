import type { Config } from "../../config/schema.ts";
import type { GgufSummary } from "../model.ts";

/** The engine takes no more; its schema says the same. */
const MAX_THREADS = 32;
const MAX_BATCH = 8192;

/**
 * Prefill of one step may take half a second: with what the step adds around it, a cancel is then obeyed within a
 * second. Measured on one thread of a small shared machine: about 75 tokens/s for a model of 500 million weights.
 */
const STEP_SECONDS = 0.5;
const WEIGHT_TOKENS_PER_SECOND = 75 * 500_000_000;
/** Steps below or above are only slower, or take memory for nothing. */
const SMALLEST_STEP = 16;
const LARGEST_STEP = 512;

/** Threads of an engine: as configured, else half of the machine's, which leaves the other half to everything else. */
export function engineThreads(configured: number, cores: number): number {
  return configured > 0 ? configured : Math.min(MAX_THREADS, Math.max(1, Math.floor(cores / 2)));
}

/**
 * Prompt tokens processed in one step: as configured, else a power of two that keeps a step short. Encoders take a
 * whole text in one step, so theirs is the context.
 */
export function engineBatchSize(
  gguf: Pick<GgufSummary, "purpose" | "parameters">,
  contextSize: number,
  engine: Pick<Config["engine"], "batch_size">,
): number {
  if (gguf.purpose !== "generate") return Math.min(contextSize, MAX_BATCH);
  if (engine.batch_size > 0) return engine.batch_size;
  const tokens = (STEP_SECONDS * WEIGHT_TOKENS_PER_SECOND) / Math.max(1, gguf.parameters);
  return Math.min(LARGEST_STEP, Math.max(SMALLEST_STEP, 2 ** Math.floor(Math.log2(tokens))));
}
