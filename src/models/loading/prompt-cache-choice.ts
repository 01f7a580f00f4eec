import type { EngineSpec } from "../../engine/protocol/engine-spec.ts";
import type { Kernels } from "../../engine/prepare-engine.ts";

/** Whole contexts that are worth keeping: more conversations than these seldom take turns. */
const CONTEXTS = 4;

/** Most bytes that are chosen without being asked for. */
const MOST_BYTES = 1024 ** 3;

/** Share of the memory that the engine leaves free: other models and longer contexts are better uses for the rest. */
const FREE_SHARE = 1 / 8;

export interface PromptCacheQuestion {
  readonly spec: Pick<EngineSpec, "purpose" | "contextSize" | "contextShift" | "cacheReuse"> & {
    readonly draft?: unknown;
  };
  readonly kvBytesPerToken: number;
  readonly kernels: Kernels;
  /** -1: choose. */
  readonly configured: number;
  /** Bytes that engines may use, less what this one needs without a prompt cache, and others. */
  readonly freeBytes: number;
}

/** Bytes that an engine gets for prompts that no slot holds any more; undefined: none. */
export function choosePromptCache({
  spec: { purpose, contextSize, contextShift, cacheReuse = 0, draft },
  kvBytesPerToken,
  kernels,
  configured,
  freeBytes,
}: PromptCacheQuestion): number | undefined {
  // What is left of a shifted context was computed from what has been dropped.
  const isShifted = contextShift || cacheReuse > 0;
  // A draft model would have read something else.
  if (purpose !== "generate" || kernels === "stock" || isShifted || draft !== undefined) return undefined;
  if (configured >= 0) return configured || undefined;
  const wished = Math.min(MOST_BYTES, CONTEXTS * contextSize * kvBytesPerToken);
  return Math.max(0, Math.floor(Math.min(wished, freeBytes * FREE_SHARE))) || undefined;
}
