import { z } from "zod";
import type { ChatMessage, FinishReason, ToolCall } from "../../engine/protocol/generation.ts";
import { ServiceError } from "../../errors/service-error.ts";

export const wireToolCallSchema = z
  .object({
    id: z.string(),
    function: z.object({
      index: z.int(),
      name: z.string(),
      arguments: z.record(z.string(), z.unknown()).describe("An object, not JSON text."),
    }),
  })
  .meta({ id: "OllamaToolCall" });
type WireToolCall = z.output<typeof wireToolCallSchema>;

/**
 * Converts calls to this API's format, with arguments as objects. Drops a call that the token limit cut off.
 * @throws ServiceError inference_failed when the model's arguments are not an object
 */
export function wireToolCalls(calls: readonly ToolCall[], reason: FinishReason): WireToolCall[] {
  return calls.flatMap(({ id, name, arguments: text }, index) => {
    const parsed = parseObject(text);
    if (parsed) return [{ id, function: { index, name, arguments: parsed } }];
    if (reason === "length") return [];
    throw new ServiceError(
      "inference_failed",
      `The model called "${name}" with arguments that are not a JSON object.`,
    );
  });
}

function parseObject(text: string): Record<string, unknown> | undefined {
  if (text.trim() === "") return {};
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === "object" && value !== null && !Array.isArray(value) ? { ...value } : undefined;
  } catch {
    return undefined;
  }
}

/**
 * Adds call IDs to tool results: many templates need them, but clients of this API seldom send them. A result belongs to
 * the first call without a result, of its tool if it names one.
 */
export function linkToolResults(messages: readonly ChatMessage[]): ChatMessage[] {
  let open: ToolCall[] = [];
  return messages.map((message) => {
    if (message.role === "assistant") open = [...(message.toolCalls ?? [])];
    if (message.role !== "tool") return message;
    const answered = open.find(({ id, name }) =>
      message.toolCallId === undefined ? name === (message.name ?? name) : id === message.toolCallId,
    );
    if (!answered) return message;
    open = open.filter((call) => call !== answered);
    return { ...message, toolCallId: answered.id, name: message.name ?? answered.name };
  });
}
