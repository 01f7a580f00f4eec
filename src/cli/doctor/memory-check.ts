import type { MemoryLimit } from "../../machine/cgroup-limits.ts";
import { memoryLimits } from "../../machine/memory-limits.ts";
import { formatBytes } from "../terminal/quantity.ts";
import { type Check, note, ok, problem } from "./check.ts";

const NAME = "Memory";

/** The model that ships runs with less. */
const LITTLE_BYTES = 400e6;
/** A model of half a billion weights with its context needs about as much. */
const SCARCE_BYTES = 1.5e9;

/** Memory that is left to models, by the narrowest of the limits. */
export function memoryCheck(
  limits: () => readonly MemoryLimit[] = memoryLimits,
  platform: NodeJS.Platform = process.platform,
): Check {
  return { name: NAME, deadlineMs: 5000, look: async () => [judge(limits(), platform)] };
}

function judge(limits: readonly MemoryLimit[], platform: NodeJS.Platform) {
  const [narrowest] = limits.toSorted((a, b) => left(a) - left(b));
  if (narrowest === undefined) return note(NAME, "not known");
  // Other systems do not report what other programs would free.
  if (platform !== "linux") return ok(NAME, `${formatBytes(narrowest.bytes)} in total`);
  const free = left(narrowest);
  const what = `${formatBytes(free)} free of ${formatBytes(narrowest.bytes)} (${narrowest.name})`;
  if (free >= SCARCE_BYTES) return ok(NAME, what);
  const cure =
    "Unload models (daybreak unload), end other programs, or raise the limit of the container or control group.";
  if (free >= LITTLE_BYTES) return note(NAME, `${what}: enough for small models only`, cure);
  return problem(NAME, `${what}: too little for almost any model`, cure);
}

function left({ bytes, usedBytes }: MemoryLimit): number {
  return Math.max(0, bytes - usedBytes);
}
