import { z } from "zod";
import type { ChatMessage, ContentPart, ToolCall } from "../../engine/protocol/generation.ts";
import { dictionary, list } from "../../http/input/bounded-lists.ts";
import { optional } from "../../http/input/common-fields.ts";
import type { InferenceRequest } from "../../inference/inference.ts";
import { decodeMedia } from "../../inference/media-data.ts";
import type { Model } from "../../models/model.ts";
import { chatInput, chatMessage, textParts, toolDefinition } from "../chat-input.ts";
import { thinkingFromLevel } from "../request-settings.ts";
import { functionSchema, thinkSchema } from "../wire/generation-fields.ts";
import {
  type Content,
  labelFields,
  logprobsField,
  summaryFields,
  wireToolCallSchema,
} from "./ollama-answer.ts";
import { generationFields, modelField, toSettings } from "./ollama-fields.ts";

const messageSchema = z.object({
  role: z.enum(["system", "developer", "user", "assistant", "tool"]),
  content: optional(z.string(), "Message text."),
  thinking: optional(z.string(), "The model's earlier reasoning, for chat templates that include it."),
  images: optional(
    list(z.string()),
    "Images (PNG, JPEG, GIF, BMP, WebP) and audio (WAV, MP3, FLAC) as base64.",
  ),
  tool_calls: optional(
    list(
      z.object({
        id: z.string().nullish(),
        function: z.object({
          name: z.string(),
          arguments: optional(z.union([dictionary(z.unknown()), z.string()]), "An object or JSON text."),
        }),
      }),
    ),
    "Tool calls of the model in this turn.",
  ),
  tool_name: optional(z.string(), "Name of the tool, in a tool result."),
  tool_call_id: optional(
    z.string(),
    "ID of the call, in a tool result. Default: the first call without a result.",
  ),
});
type WireMessage = z.output<typeof messageSchema>;

const toolSchema = z.object({
  type: z.string().nullish(),
  function: functionSchema,
});

/** POST /api/chat of the Ollama API. Unknown fields are ignored. */
export const chatRequestSchema = z
  .object({
    model: modelField,
    messages: optional(
      list(messageSchema),
      "The conversation. Empty: only load the model, or unload it with keep_alive 0.",
    ),
    tools: optional(list(toolSchema), "Functions the model may call."),
    think: thinkSchema.describe(
      'Let the model think before it answers: true, false, or "low", "medium", "high", "max". A level is passed to the chat template; for a template without levels, it limits thinking to 1024, 4096 or 16384 tokens. Default: the Modelfile\'s THINKING, otherwise false.',
    ),
    ...generationFields,
  })
  .meta({ id: "OllamaChatRequest" });
export type ChatRequest = z.output<typeof chatRequestSchema>;

/** @throws ServiceError invalid_parameter for an invalid image */
export function toChatRequest(body: ChatRequest, model: Model): InferenceRequest {
  return {
    endpoint: "chat",
    input: chatInput(linkToolResults((body.messages ?? []).map(toMessage)), {
      tools: (body.tools ?? []).map((tool) => toolDefinition(tool.function)),
      ...thinkingFromLevel(body.think),
    }),
    ...toSettings(body, model),
  };
}

function toMessage(message: WireMessage, index: number): ChatMessage {
  const images = (message.images ?? []).map((file, at): ContentPart =>
    decodeMedia(file, `messages.${index}.images.${at}`),
  );
  const { role, thinking: reasoning, tool_calls: toolCalls, tool_call_id: toolCallId } = message;
  const content = [...images, ...textParts(message.content)];
  const name = role === "tool" ? message.tool_name : undefined;
  return chatMessage({ role, content, reasoning, toolCalls, toolCallId, name }, index);
}

const answerMessageSchema = z.object({
  role: z.literal("assistant"),
  content: z.string().describe("The text, or part of it."),
  thinking: z.string().optional().describe("The model's reasoning, or part of it."),
  tool_calls: z.array(wireToolCallSchema).optional(),
});

const chatFields = { ...labelFields, message: answerMessageSchema, logprobs: logprobsField };

export const chatAnswerSchema = z
  .object({ ...chatFields, done: z.literal(true), ...summaryFields })
  .meta({ id: "OllamaChatAnswer" });
export const chatLineSchema = z.union([
  z.object({ ...chatFields, done: z.literal(false) }),
  chatAnswerSchema,
]);

export function placeInMessage({ text, ...more }: Content) {
  return { message: { role: "assistant", content: text, ...more } };
}

/**
 * Adds call IDs to tool results: many templates need them, but clients of this API seldom send them. A result belongs
 * to the first call without a result, of its tool if it names one.
 */
function linkToolResults(messages: readonly ChatMessage[]): ChatMessage[] {
  let pending: ToolCall[] = [];
  return messages.map((message) => {
    if (message.role === "assistant") pending = [...(message.toolCalls ?? [])];
    if (message.role !== "tool") return message;
    const call = pending.find(({ id, name }) =>
      message.toolCallId === undefined ? name === (message.name ?? name) : id === message.toolCallId,
    );
    if (!call) return message;
    pending = pending.filter((each) => each !== call);
    return { ...message, toolCallId: call.id, name: message.name ?? call.name };
  });
}
