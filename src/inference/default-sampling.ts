import type { Sampling } from "../engine/protocol/generation.ts";

/**
 * Defaults of the interface specification, part "Limits". Every dialect uses them, so that the same request gives
 * the same answer whichever API it came by; a model's own PARAMETERs come before them.
 */
export const DEFAULT_SAMPLING = {
  temperature: 0.7,
  topP: 0.9,
  topK: 40,
} as const satisfies Sampling;

/**
 * The seed of a request as the engine takes it, in 32 bits. The largest value, which is what -1 becomes, means
 * "another one each time" to the engine.
 */
export function toSeed(seed: number | null | undefined): number | undefined {
  return seed == null ? undefined : seed >>> 0;
}
