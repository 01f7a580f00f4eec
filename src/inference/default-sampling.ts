import type { Sampling } from "../engine/protocol/generation.ts";

/**
 * Default sampling settings of all dialects, so that a request has the same answer in every API. A model's PARAMETERs take
 * precedence.
 */
export const DEFAULT_SAMPLING = {
  temperature: 0.7,
  topP: 0.9,
  topK: 40,
} as const satisfies Sampling;

/**
 * The seed of a request in 32 bits, for the engine. -1 becomes the largest value, which means a random seed to the
 * engine.
 */
export function toSeed(seed: number | null | undefined): number | undefined {
  return seed == null ? undefined : seed >>> 0;
}
