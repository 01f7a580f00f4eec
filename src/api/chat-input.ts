import {
  type ChatMessage,
  type ContentPart,
  type GenerationInput,
  type JsonSchema,
  type ToolDefinition,
} from "../engine/protocol/generation.ts";
import { decodeImage } from "../inference/media-data.ts";

type ChatInput = Extract<GenerationInput, { kind: "chat" }>;

/** Builds the input of a chat. By default, the model may call no tools, and any number of tools per turn. */
export function chatInput(
  messages: ChatMessage[],
  settings: Partial<Omit<ChatInput, "kind">> = {},
): ChatInput {
  return { kind: "chat", messages, tools: [], toolChoice: "auto", parallelToolCalls: true, ...settings };
}

/** Message of a request, in terms common to the APIs. */
interface RequestMessage {
  readonly role: "system" | "developer" | "user" | "assistant" | "tool";
  readonly content: ContentPart[];
  /** Reasoning of an assistant message. */
  readonly reasoning?: string | null | undefined;
  /** Tool calls of an assistant message. */
  readonly toolCalls?: readonly RequestToolCall[] | null | undefined;
  /** ID of the tool call that a message of a tool answers. */
  readonly toolCallId?: string | null | undefined;
  readonly name?: string | null | undefined;
}

interface RequestToolCall {
  readonly id?: string | null | undefined;
  readonly function: {
    readonly name: string;
    /** JSON text or an object. */
    readonly arguments?: string | Readonly<Record<string, unknown>> | null | undefined;
  };
}

/**
 * Converts a message. The role developer becomes system. A tool call without an ID gets one from its position.
 * @param index position of the message
 */
export function chatMessage(message: RequestMessage, index: number): ChatMessage {
  const { role, content } = message;
  const name = message.name ?? undefined;
  if (role === "user") return { role, content, name };
  if (role === "tool") return { role, content, toolCallId: message.toolCallId ?? undefined, name };
  if (role !== "assistant") return { role: "system", content, name };
  const toolCalls = message.toolCalls?.map(({ id, function: { name: tool, arguments: input } }, at) => ({
    id: id ?? `call_${index}_${at}`,
    name: tool,
    arguments: typeof input === "string" ? input : JSON.stringify(input ?? {}),
  }));
  return { role, content, reasoning: message.reasoning ?? undefined, toolCalls, name };
}

/** Converts the text of a message: a string, or parts of text and refusals. */
export function textParts(
  content: string | readonly ({ text: string } | { refusal: string })[] | null | undefined,
): ContentPart[] {
  if (content == null || content === "") return [];
  if (typeof content === "string") return [{ type: "text", text: content }];
  return content.map((part) => ({ type: "text", text: "text" in part ? part.text : part.refusal }));
}

/**
 * Decodes images from base64 or data: URLs.
 * @param param field of the request with the images
 * @throws ServiceError invalid_parameter
 */
export function imageParts(images: readonly string[] | null | undefined, param: string) {
  return (images ?? []).map((image, at) => ({
    type: "image" as const,
    data: decodeImage(image, `${param}.${at}`),
  }));
}

/**
 * Converts a function.
 * @param param field of the request with the parameters, for error messages
 */
export function toolDefinition(
  tool: {
    readonly name: string;
    readonly description?: string | null | undefined;
    readonly parameters?: JsonSchema | null | undefined;
    readonly strict?: boolean | null | undefined;
  },
  param?: string,
): ToolDefinition {
  return {
    name: tool.name,
    description: tool.description ?? undefined,
    parameters: tool.parameters ?? undefined,
    ...(tool.strict != null && { strict: tool.strict }),
    ...(param !== undefined && { param }),
  };
}
