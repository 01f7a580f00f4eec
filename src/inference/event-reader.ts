import type { GenerationEvent } from "../engine/protocol/generation.ts";

/**
 * Reads the events of one answer, one after the other, as what they mean: none, itself, or several for each. It may hold
 * back what only the next event decides, and gives it out with `done` at the latest.
 */
export type EventReader = (event: GenerationEvent) => Iterable<GenerationEvent>;
