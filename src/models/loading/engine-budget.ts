import type { EngineRoom } from "./engine-room.ts";
import { inMiB } from "./in-mib.ts";

/** Part of the machine's memory that engines may use when no budget is configured. */
const DEFAULT_SHARE = 0.8;

/**
 * What the configuration gives all engines together.
 * @param configured bytes; 0: a part of what there is
 * @param total bytes that the machine has, or its container
 */
export function engineBudget(configured: number, total: number): EngineRoom {
  const bytes = configured || Math.floor(total * DEFAULT_SHARE);
  const origin = configured > 0 ? "" : `, by default ${DEFAULT_SHARE * 100} percent of ${inMiB(total)}`;
  return {
    bytes,
    reason: `all models together may use ${inMiB(bytes)} (models.memory_budget${origin})`,
  };
}
