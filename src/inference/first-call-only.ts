import type { EventReader } from "./event-reader.ts";

const NOTHING = {
  usage: { promptTokens: 0, completionTokens: 0, cachedTokens: 0, reasoningTokens: 0 },
  timings: { promptMs: 0, completionMs: 0 },
};

/**
 * Ends a turn where its second tool call begins, so that the rest is not generated: some models write several though
 * they are told not to, and not every template has a grammar that would keep them from it. What the answer has cost
 * comes with the beginning of that call, which is the first token behind the answer that counts.
 */
export function firstCallOnly(): EventReader {
  return (event) =>
    event.type === "tool-call-start" && event.index > 0
      ? [{ type: "done", reason: "tool_calls", ...(event.soFar ?? NOTHING) }]
      : [event];
}
