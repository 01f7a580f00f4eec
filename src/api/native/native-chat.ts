import { z } from "zod";
import { list } from "../../http/input/bounded-lists.ts";
import type { ChatMessage, ContentPart } from "../../engine/protocol/generation.ts";
import { decodeAudio } from "../../inference/media-data.ts";
import type { InferenceRequest } from "../../inference/inference.ts";
import { chatInput, chatMessage, imageParts, textParts } from "../chat-input.ts";
import { modelField } from "../../http/input/common-fields.ts";
import { thinkingFromLevel } from "../request-settings.ts";
import { returnProgressField } from "../wire/answer-fields.ts";
import { generationFields, logprobFields, messageSchema, streamField } from "../wire/native.ts";
import { type Content, toSettings, toToolChoice, toTools } from "./native-conversion.ts";

type WireMessage = z.output<typeof messageSchema>;

export const chatFields = {
  model: modelField,
  messages: list(messageSchema, { min: 1 }).describe("The conversation."),
  ...generationFields,
  ...logprobFields,
  return_progress: returnProgressField,
};

export const chatRequestSchema = z.object({ ...chatFields, stream: streamField }).meta({ id: "ChatRequest" });

/** Chat request without `stream`, which experiments and frames lack. */
type ChatRequest = Omit<z.output<typeof chatRequestSchema>, "stream">;

export function toChatRequest(body: ChatRequest): InferenceRequest {
  return {
    endpoint: "chat",
    input: chatInput(addImages(body.messages.map(toMessage), body.images ?? []), {
      tools: toTools(body.tools),
      toolChoice: toToolChoice(body.tool_choice),
      ...thinkingFromLevel(body.think),
    }),
    ...toSettings(body),
  };
}

function toMessage(message: WireMessage, index: number): ChatMessage {
  const text = textParts(message.content);
  switch (message.role) {
    case "user": {
      const images = imageParts(message.images, `messages.${index}.images`);
      const audio = (message.audio ?? []).map((recording, at): ContentPart => ({
        type: "audio",
        data: decodeAudio(recording, `messages.${index}.audio.${at}`),
      }));
      return chatMessage({ role: "user", content: [...images, ...audio, ...text] }, index);
    }
    case "assistant": {
      const { thinking: reasoning, tool_calls: toolCalls } = message;
      return chatMessage({ role: "assistant", content: text, reasoning, toolCalls }, index);
    }
    case "tool": {
      const { tool_call_id: toolCallId, name } = message;
      return chatMessage({ role: "tool", content: text, toolCallId, name }, index);
    }
    default:
      return chatMessage({ role: message.role, content: text }, index);
  }
}

/** Adds the request's top-level images to the last user message. */
function addImages(messages: ChatMessage[], images: readonly string[]): ChatMessage[] {
  if (images.length === 0) return messages;
  const parts = imageParts(images, "images");
  const target = messages.findLastIndex(({ role }) => role === "user");
  if (target < 0) return [...messages, { role: "user", content: parts }];
  return messages.map((message, index) =>
    index === target ? { ...message, content: [...parts, ...message.content] } : message,
  );
}

export function placeInMessage({ text, ...more }: Content) {
  return { message: { role: "assistant", content: text, ...more } };
}
