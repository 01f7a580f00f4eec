import type { EventReader } from "./event-reader.ts";

/**
 * Leaves out the log-probabilities of reasoning. The engine reports them in a text piece of their own, which is
 * empty and follows the piece of reasoning; clients ask for those of the text.
 */
export function dropReasoningLogprobs(): EventReader {
  let isReasoning = false;
  return (event) => {
    if (event.type === "text-delta" && event.text === "" && isReasoning) return [];
    if (event.type === "reasoning-delta") isReasoning = true;
    else if (event.type === "text-delta") isReasoning = false;
    return [event];
  };
}
