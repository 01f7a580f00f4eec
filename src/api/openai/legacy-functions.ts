import { z } from "zod";
import { list } from "../../http/input/bounded-lists.ts";
import {
  type ChatMessage,
  type ToolCall,
  type ToolChoice,
  type ToolDefinition,
} from "../../engine/protocol/generation.ts";
import { textParts, toolDefinition } from "../chat-input.ts";
import { invalidField, optional } from "../../http/input/common-fields.ts";
import { functionSchema } from "../wire/generation-fields.ts";

// Functions, the API's predecessor of tools: at most one call per turn, and calls without an ID.

export const functionFields = {
  functions: optional(
    list(functionSchema),
    "Older form of tools; the answer then has function_call instead of tool_calls.",
  ),
  function_call: optional(
    z.union([z.enum(["auto", "none"]), z.object({ name: z.string() })]),
    "Older form of tool_choice: auto, none, or the function to call.",
  ),
};

/** Function call of an assistant message. */
export const functionCallSchema = z.object({
  name: z.string(),
  arguments: z.string().describe("JSON text."),
});

export const functionMessageSchema = z.object({
  role: z.literal("function"),
  name: z.string().describe("Name of the function that this result is for."),
  content: z.string().nullish(),
});

const fieldsSchema = z.object(functionFields);
type FunctionFields = z.output<typeof fieldsSchema>;

/** True if the answer must have its call in the older form. */
export function usesFunctions({ functions }: Pick<FunctionFields, "functions">): boolean {
  return (functions ?? []).length > 0;
}

/** @throws ServiceError invalid_parameter if combined with tools */
export function toFunctionTools(
  { functions, function_call: call }: FunctionFields,
  tools: readonly unknown[],
): { tools: ToolDefinition[]; toolChoice: ToolChoice } {
  if (tools.length > 0) throw invalidField("functions", "cannot be combined with tools; use tools.");
  return {
    tools: (functions ?? []).map((tool, index) => toolDefinition(tool, `functions.${index}.parameters`)),
    toolChoice: call ?? "auto",
  };
}

/** Converts a call in the older form. Its ID, which is missing, becomes the number of its message. */
export function toLegacyCall(call: z.output<typeof functionCallSchema>, index: number): ToolCall {
  return { id: legacyId(index), ...call };
}

/** Converts a function result, which belongs to the last call before it. */
export function toFunctionResult(
  { name, content }: z.output<typeof functionMessageSchema>,
  earlier: readonly { readonly role: string; readonly function_call?: unknown }[],
): ChatMessage {
  const call = earlier.findLastIndex((message) => message.function_call != null);
  return {
    role: "tool",
    content: textParts(content),
    toolCallId: legacyId(call),
    name,
  };
}

function legacyId(index: number): string {
  return `call_function_${index + 1}`;
}
