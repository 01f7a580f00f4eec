import type { MemoryLimit } from "../../machine/cgroup-limits.ts";
import { memoryLimits } from "../../machine/memory-limits.ts";
import { descendantBytes, privateBytes, residentBytes } from "../../machine/process-memory.ts";

const MIB = 1024 * 1024;
/** Part of the machine's memory that engines may use when no budget is configured. */
const DEFAULT_SHARE = 0.8;

/** The machine's memory at one moment. */
export interface MachineMemory {
  readonly limits: readonly MemoryLimit[];
  /** Bytes of the daemon itself. */
  readonly daemonBytes: number;
  /** Bytes that its engines have now, of what is reserved for them. */
  readonly engineBytes: number;
}

export const readMachineMemory = (): MachineMemory => ({
  limits: memoryLimits(),
  // Where the system tells of no other programs, the daemon is all there is beside the engines.
  daemonBytes: privateBytes("self") || residentBytes(),
  engineBytes: descendantBytes(),
});

/** What all engines together may have, and why not more. */
export interface Allowance {
  readonly bytes: number;
  /** A main clause with the figures: what there is, and who takes how much of it. */
  readonly reason: string;
}

/**
 * What the configuration gives all engines together.
 * @param configured bytes; 0: a part of what there is
 * @param total bytes that the machine has, or its container
 */
export function configuredAllowance(configured: number, total: number): Allowance {
  const bytes = configured || Math.floor(total * DEFAULT_SHARE);
  const origin = configured > 0 ? "" : `, by default ${DEFAULT_SHARE * 100} percent of ${inMiB(total)}`;
  return { bytes, reason: `all models together may use ${inMiB(bytes)} (models.memory_budget${origin})` };
}

/**
 * What engines may have at the moment: what the configuration gives them, or what is left of the machine or of a
 * control group beside the daemon and other programs, whichever is less.
 * @param reserved bytes that are reserved for all engines there are
 */
export function currentAllowance(
  configured: Allowance,
  memory: MachineMemory | undefined,
  reserved: number,
): Allowance {
  if (memory === undefined) return configured;
  const { limits, daemonBytes } = memory;
  // An engine that has more than was reserved for it takes it from the others.
  const engineBytes = Math.min(memory.engineBytes, reserved);
  const [least] = limits
    .map((limit) => allowanceBelow(limit, daemonBytes, engineBytes))
    .toSorted((a, b) => a.bytes - b.bytes);
  if (!least) return configured;
  if (least.bytes < configured.bytes) return least;
  return { bytes: configured.bytes, reason: `${configured.reason}; ${least.reason}` };
}

function allowanceBelow({ name, bytes, usedBytes }: MemoryLimit, daemon: number, engines: number): Allowance {
  // A daemon that was moved into the group is counted where it was before.
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
