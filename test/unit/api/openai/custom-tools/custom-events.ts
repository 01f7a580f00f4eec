import type { GenerationEvent } from "../../../../../src/engine/protocol/generation.ts";

const call = (index: number, id: string, name: string, ...pieces: string[]): GenerationEvent[] => [
  { type: "tool-call-start", index, id, name },
  ...pieces.map((text): GenerationEvent => ({ type: "tool-call-delta", index, arguments: text })),
];

/** Calls of a custom tool, of a function, and of a custom tool with unexpected arguments. */
export const CUSTOM_CALLS: readonly GenerationEvent[] = [
  { type: "start" },
  { type: "prompt-progress", processed: 9, total: 9 },
  ...call(0, "call_a", "apply_patch", '{"in', 'put": "one\\n', "“two”", '"}'),
  ...call(1, "call_b", "get_weather", '{"city":"Rome"}'),
  ...call(2, "call_c", "apply_patch", '{"patch":', '"loose"}'),
  {
    type: "done",
    reason: "tool_calls",
    usage: { promptTokens: 9, completionTokens: 9, cachedTokens: 0, reasoningTokens: 0 },
    timings: { promptMs: 1, completionMs: 1 },
  },
];
