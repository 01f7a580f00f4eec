import type { ResponseCreateParamsNonStreaming } from "openai/resources/responses/responses";
import type { GenerationEvent } from "../../../../../src/engine/protocol/generation.ts";
import { PATCH_GRAMMAR } from "../../../../support/patch-grammar.ts";
import { CUSTOM_CALLS } from "../custom-tools/custom-events.ts";

export const PATCH_TOOL = {
  type: "custom" as const,
  name: "apply_patch",
  description: "Edits files.",
  format: { type: "grammar" as const, syntax: "lark" as const, definition: PATCH_GRAMMAR },
};
export const WEATHER = {
  type: "function" as const,
  name: "get_weather",
  parameters: { type: "object" },
  strict: null,
};
export const BUILT_IN = [
  { type: "shell" as const },
  { type: "local_shell" as const },
  { type: "apply_patch" as const },
];
export const body: ResponseCreateParamsNonStreaming = {
  model: "fake",
  input: "hi",
  tools: [PATCH_TOOL, WEATHER],
};

export const ACTION = { commands: ["ls", "pwd"], timeout_ms: 1000 };
export const EXEC = { command: ["ls", "-l"], working_directory: "/tmp" };
export const UPDATE = { type: "update_file", path: "a.ts", diff: "@@\n-a\n+b\n" };

/** Events with calls of all built-in tools, of which the last is truncated. */
export const BUILT_IN_CALLS: readonly GenerationEvent[] = [
  ...CUSTOM_CALLS.slice(0, 2),
  ...[
    ["shell", ACTION] as const,
    ["local_shell", EXEC] as const,
    ["apply_patch", UPDATE] as const,
    ["apply_patch", { type: "delete_file", path: "b.ts", diff: "" }] as const,
  ].flatMap(([name, input], index): GenerationEvent[] => [
    { type: "tool-call-start", index, id: `call_${index}`, name },
    { type: "tool-call-delta", index, arguments: JSON.stringify(input).slice(0, 9) },
    { type: "tool-call-delta", index, arguments: JSON.stringify(input).slice(9) },
  ]),
  { type: "tool-call-start", index: 4, id: "call_4", name: "shell" },
  { type: "tool-call-delta", index: 4, arguments: '{"commands":["rm' },
  ...CUSTOM_CALLS.slice(-1),
];
