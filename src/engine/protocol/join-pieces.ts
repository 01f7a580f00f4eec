import type { GenerationEvent } from "./generation.ts";

/** Appends a piece of an answer to the one before it, so that fewer events are sent; returns false when that is not possible. */
export function joinPieces(last: GenerationEvent | undefined, event: GenerationEvent): boolean {
  if (last?.type === "text-delta" && event.type === "text-delta") {
    // Empty text has the log-probabilities of something else, such as reasoning.
    if ((last.text === "") !== (event.text === "")) return false;
    last.text += event.text;
    if (event.logprobs) last.logprobs = [...(last.logprobs ?? []), ...event.logprobs];
  } else if (last?.type === "reasoning-delta" && event.type === "reasoning-delta") {
    last.text += event.text;
  } else if (last?.type === "tool-call-delta" && event.type === "tool-call-delta") {
    if (last.index !== event.index) return false;
    last.arguments += event.arguments;
  } else return false;
  if (event.soFar) last.soFar = event.soFar;
  return true;
}
