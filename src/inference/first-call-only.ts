import type { EventReader } from "./event-reader.ts";

const NOTHING = {
  usage: { promptTokens: 0, completionTokens: 0, cachedTokens: 0, reasoningTokens: 0 },
  timings: { promptMs: 0, completionMs: 0 },
};

/**
 * Ends a turn where its second tool call begins, so that the rest is not generated: some models write several calls even if
 * told not to, and not every template has a grammar that prevents it. The beginning of the second call carries the usage
 * of the answer up to there.
 */
export function firstCallOnly(): EventReader {
  return (event) =>
    event.type === "tool-call-start" && event.index > 0
      ? [{ type: "done", reason: "tool_calls", ...(event.soFar ?? NOTHING) }]
      : [event];
}
