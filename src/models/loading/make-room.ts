import { ServiceError } from "../../errors/service-error.ts";
import type { MemoryNeeds } from "./load-request.ts";

/** An engine as the memory budget sees it: what it is expected to need at most. */
export interface Resident extends MemoryNeeds {
  readonly alias: string;
  /** It may be unloaded now. */
  readonly idle: boolean;
  /** Unix milliseconds. */
  readonly lastUsed: number;
}

export interface Newcomer extends MemoryNeeds {
  readonly alias: string;
  /** Idle engines may be unloaded for it. */
  readonly mayEvict: boolean;
}

/**
 * Which engines to unload so that the newcomer fits into the budget: the least recently used idle ones, as few as
 * that order allows. Throws `insufficient_memory` when it cannot fit, `overloaded` when it only cannot fit now. A GPU
 * that is too full all the same is no error here: its engines can do with fewer layers.
 */
export function makeRoom(
  newcomer: Newcomer,
  residents: readonly Resident[],
  budget: MemoryNeeds,
): readonly string[] {
  if (newcomer.bytes > budget.bytes) {
    throw new ServiceError(
      "insufficient_memory",
      `The model ${newcomer.alias} needs about ${inMiB(newcomer.bytes)}, and all models together may use ${inMiB(budget.bytes)} (models.memory_budget).`,
    );
  }
  let free = budget.bytes - residents.reduce((sum, { bytes }) => sum + bytes, 0);
  let gpuFree = budget.gpuBytes - residents.reduce((sum, { gpuBytes }) => sum + gpuBytes, 0);
  const candidates = newcomer.mayEvict
    ? residents.filter((resident) => resident.idle).toSorted((a, b) => a.lastUsed - b.lastUsed)
    : [];
  const evicted: string[] = [];
  for (const { alias, bytes, gpuBytes } of candidates) {
    const helps = newcomer.bytes > free || (newcomer.gpuBytes > gpuFree && gpuBytes > 0);
    if (!helps) continue;
    free += bytes;
    gpuFree += gpuBytes;
    evicted.push(alias);
  }
  if (newcomer.bytes <= free) return evicted;
  const message = `The model ${newcomer.alias} needs about ${inMiB(newcomer.bytes)}, and only ${inMiB(Math.max(0, free))} of ${inMiB(budget.bytes)} are free`;
  if (newcomer.mayEvict) {
    throw new ServiceError("overloaded", `${message}: the other models are in use.`, {
      retryAfterSecs: RETRY_AFTER_SECS,
    });
  }
  throw new ServiceError("insufficient_memory", `${message}; unload another model first.`);
}

/** Requests usually take some seconds; then a model is idle. */
const RETRY_AFTER_SECS = 5;
const MIB = 1024 * 1024;

function inMiB(bytes: number): string {
  return `${Math.ceil(bytes / MIB)} MiB`;
}
