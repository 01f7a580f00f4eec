import type { EventReader } from "./event-reader.ts";

/**
 * Drops the log-probabilities of reasoning, which the engine reports in an empty text event after the reasoning; clients
 * want those of the text.
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
