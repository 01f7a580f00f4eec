import { z } from "zod";
import { list } from "../../http/input/bounded-lists.ts";
import {
  jsonSchemaSchema,
  type ChatMessage,
  type ToolCall,
  type ToolChoice,
  type ToolDefinition,
} from "../../engine/protocol/generation.ts";
import { ServiceError } from "../../errors/service-error.ts";

/** What the API had before tools: functions, at most one call per turn, and calls without an id. */

export const functionFields = {
  functions: list(
    z.object({
      name: z.string().min(1),
      description: z.string().nullish(),
      parameters: jsonSchemaSchema.nullish().describe("JSON Schema of the arguments."),
    }),
  )
    .nullish()
    .describe("The older form of tools; the answer then has function_call in place of tool_calls."),
  function_call: z
    .union([z.enum(["auto", "none"]), z.object({ name: z.string() })])
    .nullish()
    .describe("The older form of tool_choice: auto, none, or the function to call."),
};

/** Of an assistant's message. */
export const functionCallSchema = z.object({
  name: z.string(),
  arguments: z.string().describe("JSON text."),
});

export const functionMessageSchema = z.object({
  role: z.literal("function"),
  name: z.string().describe("The function whose result this is."),
  content: z.string().nullish(),
});

const fieldsSchema = z.object(functionFields);
type FunctionFields = z.output<typeof fieldsSchema>;

/** Whether the answer has its call in the older form. */
export function usesFunctions({ functions }: Pick<FunctionFields, "functions">): boolean {
  return (functions ?? []).length > 0;
}

/** @throws ServiceError invalid_parameter beside tools, and for a function_call without functions */
export function toFunctionTools(
  { functions, function_call: call }: FunctionFields,
  tools: readonly unknown[],
): { tools: ToolDefinition[]; toolChoice: ToolChoice } {
  if (tools.length > 0) throw invalid("functions: cannot be combined with tools; use tools.", "functions");
  return {
    tools: (functions ?? []).map(({ name, description, parameters }, at) => ({
      name,
      description: description ?? undefined,
      parameters: parameters ?? undefined,
      param: `functions.${at}.parameters`,
    })),
    toolChoice: call ?? "auto",
  };
}

/** Calls in the older form have no id; they are numbered by their message, as is the result that follows. */
export function toLegacyCall(call: z.output<typeof functionCallSchema>, at: number): ToolCall {
  return { id: legacyId(at), ...call };
}

/** The result belongs to the last call before it. */
export function toFunctionResult(
  { name, content }: z.output<typeof functionMessageSchema>,
  earlier: readonly { readonly role: string; readonly function_call?: unknown }[],
): ChatMessage {
  const call = earlier.findLastIndex((message) => message.function_call != null);
  return {
    role: "tool",
    content: content ? [{ type: "text", text: content }] : [],
    toolCallId: legacyId(call),
    name,
  };
}

function legacyId(at: number): string {
  return `call_function_${at + 1}`;
}

function invalid(message: string, param: string): ServiceError {
  return new ServiceError("invalid_parameter", message, { param });
}
