import type { EventReader } from "./event-reader.ts";

/**
 * Drops the log-probabilities of reasoning and tool calls, which the engine reports in empty text events after their pieces;
 * clients want those of the text.
 */
export function dropUnseenLogprobs(): EventReader {
  let isUnseen = false;
  return (event) => {
    if (event.type === "text-delta") {
      if (event.text === "" && isUnseen) return [];
      isUnseen = false;
    } else if (event.type !== "start" && event.type !== "prompt-progress") {
      isUnseen = true;
    }
    return [event];
  };
}
