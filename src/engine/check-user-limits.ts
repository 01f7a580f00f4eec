import { ServiceError } from "../errors/service-error.ts";
import type { UserLimits } from "../machine/user-limits.ts";
import type { MemoryEstimate } from "./estimate-memory.ts";

const GIB = 1024 ** 3;

/**
 * Address space that an engine reserves, nearly all of it unused: V8 surrounds a 64-bit WebAssembly memory with guard
 * pages. The size of the heap does not matter.
 */
const ADDRESS_SPACE_BYTES = 43 * GIB;

/** Writable memory that V8 reserves besides the heap, nearly all of it unused. */
const DATA_BASE_BYTES = 1.25 * GIB;

/** @throws ServiceError insufficient_memory when a ulimit keeps engines from starting; the message names it */
export function checkUserLimits(
  { heapBytes }: Pick<MemoryEstimate, "heapBytes">,
  { addressSpaceBytes = Infinity, dataBytes = Infinity }: UserLimits,
): void {
  const data = DATA_BASE_BYTES + heapBytes;
  if (addressSpaceBytes < ADDRESS_SPACE_BYTES) {
    throw tooLow("address space, most of it unused", ADDRESS_SPACE_BYTES, addressSpaceBytes, "-v");
  }
  if (dataBytes < data) throw tooLow("writable memory, part of it unused", data, dataBytes, "-d");
}

function tooLow(what: string, needed: number, limit: number, flag: string): ServiceError {
  return new ServiceError(
    "insufficient_memory",
    `An engine reserves about ${inGiB(needed)} of ${what}, but the limit is ${inGiB(limit)} (ulimit ${flag}). Run "ulimit ${flag} unlimited" before you start the daemon; models.memory_budget still limits the memory that models actually use.`,
  );
}

function inGiB(bytes: number): string {
  return `${(bytes / GIB).toFixed(1)} GiB`;
}
