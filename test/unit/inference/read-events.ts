import type { GenerationEvent } from "../../../src/engine/protocol/generation.ts";
import type { EventReader } from "../../../src/inference/stream-filters.ts";

/** What a reader makes of all events of an answer. */
export function readEvents(read: EventReader, events: Iterable<GenerationEvent>): GenerationEvent[] {
  return Array.from(events, (event) => Array.from(read(event))).flat();
}
