import { formatMebibytes } from "../../json/quantities.ts";
import { MAX_TIMER_MS } from "../../async/timers.ts";
import {
  descendantBytes,
  type MemoryLimit,
  memoryLimits,
  privateBytes,
  residentBytes,
} from "../../machine/memory.ts";

/** Default share of the machine's memory for engines, if no budget is configured. */
const DEFAULT_MEMORY_SHARE = 0.8;

export interface MachineMemory {
  readonly limits: readonly MemoryLimit[];
  /** Bytes used by the daemon itself. */
  readonly daemonBytes: number;
  /** Bytes that its engines use now, which may be less than was reserved for them. */
  readonly engineBytes: number;
}

export const readMachineMemory = (): MachineMemory => ({
  limits: memoryLimits(),
  // Resident bytes where the system reports no private ones.
  daemonBytes: privateBytes("self") || residentBytes(),
  engineBytes: descendantBytes(),
});

/** Memory that all engines together may use, and the reason for that limit. */
export interface MemoryAllowance {
  readonly bytes: number;
  /** Clause with the figures, for error messages. */
  readonly reason: string;
}

/** Returns the configured memory for all engines together, in bytes; if 0 is configured, a share of the total. */
export function configuredAllowance(configured: number, total: number): MemoryAllowance {
  const bytes = configured || Math.floor(total * DEFAULT_MEMORY_SHARE);
  const origin =
    configured > 0 ? "" : `, by default ${DEFAULT_MEMORY_SHARE * 100} percent of ${formatMebibytes(total)}`;
  return {
    bytes,
    reason: `all models together may use ${formatMebibytes(bytes)} (models.memory_budget${origin})`,
  };
}

/**
 * Returns the memory that engines may use at the moment: the configured amount, or what the daemon and other programs
 * leave of the machine or a control group, whichever is less.
 * @param reserved bytes reserved for all engines
 */
export function currentAllowance(
  configured: MemoryAllowance,
  memory: MachineMemory | undefined,
  reserved: number,
): MemoryAllowance {
  if (memory === undefined) return configured;
  const { limits, daemonBytes } = memory;
  // Use beyond the reservations counts as that of other programs, and so reduces the memory for engines.
  const engineBytes = Math.min(memory.engineBytes, reserved);
  const [lowest] = limits
    .map((limit) => allowanceBelow(limit, daemonBytes, engineBytes))
    .toSorted((a, b) => a.bytes - b.bytes);
  if (!lowest) return configured;
  if (lowest.bytes < configured.bytes) return lowest;
  return { bytes: configured.bytes, reason: `${configured.reason}; ${lowest.reason}` };
}

function allowanceBelow(
  { name, bytes, usedBytes }: MemoryLimit,
  daemon: number,
  engines: number,
): MemoryAllowance {
  // A daemon that was moved into the group is still counted in its former group.
  const others = Math.max(0, usedBytes - engines - daemon);
  const left = Math.max(0, bytes - daemon - others);
  return {
    bytes: left,
    reason: `of the ${formatMebibytes(bytes)} of ${name} the daemon takes ${formatMebibytes(daemon)} and other programs ${formatMebibytes(others)}, which leaves ${formatMebibytes(left)} for models`,
  };
}

/** Clock of the models service, which tests replace. */
export interface Clock {
  /** Unix milliseconds. */
  now(): number;
  /** Calls back once after this many milliseconds; returns a function that cancels it. */
  after(milliseconds: number, callback: () => void): () => void;
}

export const systemClock: Clock = {
  now: () => Date.now(),
  after(milliseconds, callback) {
    let timer: NodeJS.Timeout;
    const arm = (left: number): void => {
      const step = Math.min(left, MAX_TIMER_MS);
      // A pending unload must not keep the process alive.
      timer = setTimeout(() => (left > step ? arm(left - step) : callback()), step).unref();
    };
    arm(milliseconds);
    return () => clearTimeout(timer);
  },
};
