import type { GenerationEvent } from "../engine/protocol/generation.ts";

/**
 * Leaves out the log-probabilities of reasoning. The engine reports them in a text piece of their own, which is
 * empty and follows the piece of reasoning; clients ask for those of the text.
 */
export async function* dropReasoningLogprobs(
  events: AsyncIterable<GenerationEvent>,
): AsyncGenerator<GenerationEvent, void, undefined> {
  let isReasoning = false;
  for await (const event of events) {
    if (event.type === "text-delta" && event.text === "" && isReasoning) continue;
    if (event.type === "reasoning-delta") isReasoning = true;
    else if (event.type === "text-delta") isReasoning = false;
    yield event;
  }
}
