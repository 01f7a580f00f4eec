import { memoryTotal } from "../../machine/memory-limits.ts";
import { residentBytes } from "../../machine/resident-bytes.ts";
import type { Model } from "../../models/model.ts";

export interface MachineMemory {
  /** Resident bytes of the daemon and its engines. */
  readonly usedBytes: number;
  /** What the machine, or the container's limit, has. */
  readonly totalBytes: number;
}

/** What the daemon and the engines of these models hold now, and how much there is. */
export function machineMemory(models: readonly Model[]): MachineMemory {
  const engines = models.reduce((sum, model) => sum + (model.memoryBytes ?? 0), 0);
  return { usedBytes: residentBytes() + engines, totalBytes: memoryTotal() };
}
