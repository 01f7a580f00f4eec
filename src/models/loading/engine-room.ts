import type { MemoryLimit } from "../../machine/cgroup-limits.ts";
import { memoryLimits } from "../../machine/memory-limits.ts";
import { descendantBytes, privateBytes } from "../../machine/process-memory.ts";
import { residentBytes } from "../../machine/resident-bytes.ts";
import { inMiB } from "./in-mib.ts";

/** The machine's memory at one moment. */
export interface MachineMemory {
  readonly limits: readonly MemoryLimit[];
  /** Bytes of the daemon itself. */
  readonly daemonBytes: number;
  /** Bytes that its engines have now, of what is booked for them. */
  readonly engineBytes: number;
}

export type ReadMachineMemory = () => MachineMemory;

export const readMachineMemory: ReadMachineMemory = () => ({
  limits: memoryLimits(),
  // Where the system tells of no other programs, the daemon is all there is beside the engines.
  daemonBytes: privateBytes("self") || residentBytes(),
  engineBytes: descendantBytes(),
});

/** What all engines together may have, and why not more. */
export interface EngineRoom {
  readonly bytes: number;
  /** A main clause with the figures: what there is, and who takes how much of it. */
  readonly reason: string;
}

/**
 * The memory for engines: what the configuration gives them, or what is left of the machine or of a control group
 * beside the daemon and other programs, whichever is less.
 * @param booked bytes that are booked for all engines there are
 */
export function engineRoom(
  budget: EngineRoom,
  memory: MachineMemory | undefined,
  booked: number,
): EngineRoom {
  if (memory === undefined) return budget;
  const { limits, daemonBytes } = memory;
  // An engine that has more than was booked for it takes it from the others.
  const engineBytes = Math.min(memory.engineBytes, booked);
  const [first, ...others] = limits.map((limit) => roomBelow(limit, daemonBytes, engineBytes));
  if (!first) return budget;
  const least = others.reduce((less, room) => (room.bytes < less.bytes ? room : less), first);
  if (least.bytes < budget.bytes) return least;
  return { bytes: budget.bytes, reason: `${budget.reason}; ${least.reason}` };
}

function roomBelow({ name, bytes, usedBytes }: MemoryLimit, daemon: number, engines: number): EngineRoom {
  // A daemon that was moved into the group is counted where it was before.
  const others = Math.max(0, usedBytes - engines - daemon);
  const left = Math.max(0, bytes - daemon - others);
  return {
    bytes: left,
    reason: `of the ${inMiB(bytes)} of ${name} the daemon takes ${inMiB(daemon)} and other programs ${inMiB(others)}, which leaves ${inMiB(left)} for models`,
  };
}
