import { MAX_TIMER_MS } from "../../async/timers.ts";
import {
  descendantBytes,
  type MemoryLimit,
  memoryLimits,
  privateBytes,
  residentBytes,
} from "../../machine/memory.ts";

const MIB = 1024 * 1024;
/** Share of the machine's memory that engines may use if no budget is configured. */
const DEFAULT_SHARE = 0.8;

/** The machine's memory at one moment. */
export interface MachineMemory {
  readonly limits: readonly MemoryLimit[];
  /** Bytes of the daemon itself. */
  readonly daemonBytes: number;
  /** Bytes that its engines use now, out of what is reserved for them. */
  readonly engineBytes: number;
}

export const readMachineMemory = (): MachineMemory => ({
  limits: memoryLimits(),
  // If the system does not report other programs, only the daemon counts besides the engines.
  daemonBytes: privateBytes("self") || residentBytes(),
  engineBytes: descendantBytes(),
});

/** How much memory all engines together may use, and what limits it. */
export interface Allowance {
  readonly bytes: number;
  /** A clause with the figures: how much there is, and what uses it. */
  readonly reason: string;
}

/**
 * How much memory the configuration gives all engines together.
 * @param configured bytes; 0: a share of the total
 * @param total bytes of memory of the machine or container
 */
export function configuredAllowance(configured: number, total: number): Allowance {
  const bytes = configured || Math.floor(total * DEFAULT_SHARE);
  const origin = configured > 0 ? "" : `, by default ${DEFAULT_SHARE * 100} percent of ${inMiB(total)}`;
  return { bytes, reason: `all models together may use ${inMiB(bytes)} (models.memory_budget${origin})` };
}

/**
 * How much memory engines may use at the moment: what the configuration gives them, or what the daemon and other programs
 * leave of the machine or of a control group, whichever is less.
 * @param reserved bytes reserved for all engines
 */
export function currentAllowance(
  configured: Allowance,
  memory: MachineMemory | undefined,
  reserved: number,
): Allowance {
  if (memory === undefined) return configured;
  const { limits, daemonBytes } = memory;
  // An engine that uses more than was reserved for it takes it from the others.
  const engineBytes = Math.min(memory.engineBytes, reserved);
  const [least] = limits
    .map((limit) => allowanceBelow(limit, daemonBytes, engineBytes))
    .toSorted((a, b) => a.bytes - b.bytes);
  if (!least) return configured;
  if (least.bytes < configured.bytes) return least;
  return { bytes: configured.bytes, reason: `${configured.reason}; ${least.reason}` };
}

function allowanceBelow({ name, bytes, usedBytes }: MemoryLimit, daemon: number, engines: number): Allowance {
  // A daemon that was moved into the group is still counted in its former group.
  const others = Math.max(0, usedBytes - engines - daemon);
  const left = Math.max(0, bytes - daemon - others);
  return {
    bytes: left,
    reason: `of the ${inMiB(bytes)} of ${name} the daemon takes ${inMiB(daemon)} and other programs ${inMiB(others)}, which leaves ${inMiB(left)} for models`,
  };
}

/** "300 MiB", rounded up. */
export function inMiB(bytes: number): string {
  return `${Math.ceil(bytes / MIB)} MiB`;
}

/** Time as the models layer sees it; tests bring their own. */
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
