import type { ChatMessage, ToolCall } from "../engine/protocol/generation.ts";
import { tryJson } from "../json/try-json.ts";

/**
 * Messages with tool calls that a template can read: their arguments must be JSON. Empty arguments mean a function without
 * parameters; text that is not JSON, such as arguments that were cut off, becomes a JSON string.
 */
export function withReadableCalls(messages: readonly ChatMessage[]): ChatMessage[] {
  return messages.map((message) =>
    message.toolCalls ? { ...message, toolCalls: message.toolCalls.map(readable) } : message,
  );
}

function readable(call: ToolCall): ToolCall {
  if (call.arguments.trim() === "") return { ...call, arguments: "{}" };
  const isJson = tryJson(call.arguments) !== undefined;
  return isJson ? call : { ...call, arguments: JSON.stringify(call.arguments) };
}
