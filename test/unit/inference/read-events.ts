import type { GenerationEvent } from "../../../src/engine/protocol/generation.ts";
import type { EventFilter } from "../../../src/inference/stream-filters.ts";

/** Passes the events of an answer through a filter. */
export function readEvents(read: EventFilter, events: Iterable<GenerationEvent>): GenerationEvent[] {
  return Array.from(events, (event) => Array.from(read(event))).flat();
}
