import type { GenerationEvent } from "../engine/protocol/generation.ts";

/**
 * Translates the events of one answer in order, each into none, itself or several. It may hold back what depends on the next
 * event, until `done` at the latest.
 */
export type EventReader = (event: GenerationEvent) => Iterable<GenerationEvent>;

/** Passes events through readers, in order. */
export function readAll(
  events: readonly GenerationEvent[],
  readers: readonly EventReader[],
): readonly GenerationEvent[] {
  return readers.reduce((read, reader) => read.flatMap((event) => [...reader(event)]), events);
}
