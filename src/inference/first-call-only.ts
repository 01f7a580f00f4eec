import type { GenerationEvent } from "../engine/protocol/generation.ts";

/** Leaves out every tool call of a turn but the first: some models write several though they are told not to. */
export async function* firstCallOnly(
  events: AsyncIterable<GenerationEvent>,
): AsyncGenerator<GenerationEvent, void, undefined> {
  for await (const event of events) {
    const isFurtherCall =
      (event.type === "tool-call-start" || event.type === "tool-call-delta") && event.index > 0;
    if (!isFurtherCall) yield event;
  }
}
