import { ServiceError } from "../../errors/service-error.ts";
import type { EngineRoom } from "./engine-room.ts";
import { inMiB } from "./in-mib.ts";
import type { MemoryNeeds } from "./load-request.ts";

/** An engine as the memory budget sees it: what it is expected to need at most. */
export interface Resident extends MemoryNeeds {
  readonly alias: string;
  /** It may be unloaded now. */
  readonly idle: boolean;
  /** Unix milliseconds. */
  readonly lastUsed: number;
}

/** What all engines together may have. */
export interface Room extends EngineRoom {
  /** Bytes of the GPU's memory. */
  readonly gpuBytes: number;
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
export function makeRoom(newcomer: Newcomer, residents: readonly Resident[], room: Room): readonly string[] {
  if (newcomer.bytes > room.bytes) {
    throw new ServiceError(
      "insufficient_memory",
      `The model ${newcomer.alias} needs about ${inMiB(newcomer.bytes)}: ${room.reason}. A smaller context or a smaller quantization may fit.`,
    );
  }
  let free = room.bytes - residents.reduce((sum, { bytes }) => sum + bytes, 0);
  let gpuFree = room.gpuBytes - residents.reduce((sum, { gpuBytes }) => sum + gpuBytes, 0);
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
  const message = `The model ${newcomer.alias} needs about ${inMiB(newcomer.bytes)}, and only ${inMiB(Math.max(0, free))} of ${inMiB(room.bytes)} are free: ${room.reason}`;
  if (newcomer.mayEvict) {
    throw new ServiceError("overloaded", `${message}, and the other models are in use.`, {
      retryAfterSecs: RETRY_AFTER_SECS,
    });
  }
  throw new ServiceError("insufficient_memory", `${message}; unload another model first.`);
}

/** Requests usually take some seconds; then a model is idle. */
const RETRY_AFTER_SECS = 5;
