import os from "node:os";
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
  const limit = process.constrainedMemory();
  const physical = os.totalmem();
  return {
    usedBytes: process.memoryUsage.rss() + engines,
    // Without a limit the kernel reports 0 or a number beyond all memory.
    totalBytes: limit > 0 && limit < physical ? limit : physical,
  };
}
