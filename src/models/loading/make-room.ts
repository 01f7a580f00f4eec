import { ServiceError } from "../../errors/service-error.ts";

/** An engine as the memory budget sees it. */
export interface Resident {
  readonly alias: string;
  /** Bytes it is expected to need at most. */
  readonly bytes: number;
  /** It may be unloaded now. */
  readonly idle: boolean;
  /** Unix milliseconds. */
  readonly lastUsed: number;
}

export interface Newcomer {
  readonly alias: string;
  readonly bytes: number;
  /** Idle engines may be unloaded for it. */
  readonly mayEvict: boolean;
}

/**
 * Which engines to unload so that the newcomer fits into the budget: the least recently used idle ones, as few as
 * that order allows. Throws `insufficient_memory` when it cannot fit, `overloaded` when it only cannot fit now.
 */
export function makeRoom(
  newcomer: Newcomer,
  residents: readonly Resident[],
  budget: number,
): readonly string[] {
  if (newcomer.bytes > budget) {
    throw new ServiceError(
      "insufficient_memory",
      `The model ${newcomer.alias} needs about ${inMiB(newcomer.bytes)}, and all models together may use ${inMiB(budget)} (models.memory_budget).`,
    );
  }
  let free = budget - residents.reduce((sum, resident) => sum + resident.bytes, 0);
  const candidates = newcomer.mayEvict
    ? residents.filter((resident) => resident.idle).toSorted((a, b) => a.lastUsed - b.lastUsed)
    : [];
  const evicted: string[] = [];
  for (const candidate of candidates) {
    if (newcomer.bytes <= free) break;
    free += candidate.bytes;
    evicted.push(candidate.alias);
  }
  if (newcomer.bytes <= free) return evicted;
  const message = `The model ${newcomer.alias} needs about ${inMiB(newcomer.bytes)}, and only ${inMiB(Math.max(0, free))} of ${inMiB(budget)} are free`;
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
