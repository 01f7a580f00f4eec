import type { ChatMessage, ToolCall } from "../engine/protocol/generation.ts";

/**
 * Messages whose earlier tool calls a template can read: their arguments must be JSON. None at all means a function
 * without parameters; what a model wrote that is not JSON, such as arguments cut off by the length, is given back as
 * the text that it is.
 */
export function withReadableCalls(messages: readonly ChatMessage[]): ChatMessage[] {
  return messages.map((message) =>
    message.toolCalls ? { ...message, toolCalls: message.toolCalls.map(readable) } : message,
  );
}

function readable(call: ToolCall): ToolCall {
  if (call.arguments.trim() === "") return { ...call, arguments: "{}" };
  return isJson(call.arguments) ? call : { ...call, arguments: JSON.stringify(call.arguments) };
}

function isJson(text: string): boolean {
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
}
