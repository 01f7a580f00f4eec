import type { Sampling } from "../engine/protocol/generation.ts";
import { SAMPLING_FIELDS } from "../engine/protocol/sampling-fields.ts";

/**
 * Default sampling settings, the same in every API, so that a request gets the same answer in each. A model's
 * PARAMETERs take precedence.
 */
export const DEFAULT_SAMPLING = {
  temperature: SAMPLING_FIELDS.temperature.default,
  topP: SAMPLING_FIELDS.topP.default,
  topK: SAMPLING_FIELDS.topK.default,
} as const satisfies Sampling;

/**
 * Converts the seed of a request to 32 bits. -1 becomes the largest value, which means a random seed to the engine.
 */
export function toSeed(seed: number | null | undefined): number | undefined {
  return seed == null ? undefined : seed >>> 0;
}
