import type {
  ChatMessage,
  ContentPart,
  ToolChoice,
  ToolDefinition,
} from "../../engine/protocol/generation.ts";
import { ServiceError } from "../../errors/service-error.ts";
import { DEFAULT_SAMPLING } from "../../inference/default-sampling.ts";
import { decodeImage } from "../../inference/image-data.ts";
import type { InferenceRequest } from "../../inference/inference.ts";
import type { AssistantBlock, MessageParam, MessageRequest, UserBlock } from "./message-schema.ts";

type PlainUserBlock = Exclude<UserBlock, { type: "tool_result" }>;
type ToolResult = Extract<UserBlock, { type: "tool_result" }>;

export function toMessageRequest(body: MessageRequest): InferenceRequest {
  const format = body.output_config?.format ?? body.output_format;
  return {
    endpoint: "chat",
    model: body.model ?? undefined,
    input: {
      kind: "chat",
      messages: [...toSystem(body.system), ...body.messages.flatMap(toMessages)],
      ...toTools(body),
      ...toThinking(body),
    },
    maxTokens: body.max_tokens,
    stop: body.stop_sequences ?? undefined,
    sampling: {
      temperature: body.temperature ?? undefined,
      topP: body.top_p ?? undefined,
      topK: body.top_k ?? undefined,
    },
    format: format ? { type: "json_schema", schema: format.schema } : { type: "text" },
    repetitionGuard: body.repetition_guard ?? undefined,
    defaults: { sampling: DEFAULT_SAMPLING },
  };
}

function toSystem(system: MessageRequest["system"]): ChatMessage[] {
  return system == null ? [] : [{ role: "system", content: toText(system) }];
}

function toText(content: string | readonly { text: string }[]): ContentPart[] {
  if (typeof content === "string") return content === "" ? [] : [{ type: "text", text: content }];
  return content.map(({ text }) => ({ type: "text", text }));
}

/** One message can become several: each tool result is a separate message. */
function toMessages(message: MessageParam, index: number): ChatMessage[] {
  if (message.role === "system") return [{ role: "system", content: toText(message.content) }];
  if (typeof message.content === "string") return [{ role: message.role, content: toText(message.content) }];
  return message.role === "assistant"
    ? [toAssistant(message.content)]
    : toUserMessages(message.content, `messages.${index}.content`);
}

function toUserMessages(blocks: readonly UserBlock[], param: string): ChatMessage[] {
  const messages: ChatMessage[] = [];
  for (const [at, block] of blocks.entries()) {
    const last = messages.at(-1);
    if (block.type === "tool_result") messages.push(toToolMessage(block, `${param}.${at}`));
    else if (last?.role === "user") last.content.push(toPart(block, `${param}.${at}`));
    else messages.push({ role: "user", content: [toPart(block, `${param}.${at}`)] });
  }
  return messages.length > 0 ? messages : [{ role: "user", content: [] }];
}

function toToolMessage(block: ToolResult, param: string): ChatMessage {
  const { content } = block;
  const parts =
    typeof content === "string"
      ? toText(content)
      : (content ?? []).map((part, at) => toPart(part, `${param}.content.${at}`));
  // Chat templates have no error flag, so the text tells the model.
  const failed: ContentPart[] = block.is_error ? [{ type: "text", text: "Error:" }] : [];
  return { role: "tool", content: [...failed, ...parts], toolCallId: block.tool_use_id };
}

function toPart(block: PlainUserBlock, param: string): ContentPart {
  if (block.type === "text") return { type: "text", text: block.text };
  if (block.type === "image") {
    const { source } = block;
    return source.type === "base64"
      ? { type: "image", data: decodeImage(source.data, `${param}.source.data`) }
      : { type: "image", data: decodeImage(source.url, `${param}.source.url`) };
  }
  if (block.type === "search_result") {
    return { type: "text", text: [block.title, block.source, joined(block.content)].join("\n\n") };
  }
  const { source, title } = block;
  if (source.type !== "text" && source.type !== "content") {
    throw new ServiceError("unsupported_feature", "Only plain-text documents are supported.", {
      param: `${param}.source`,
    });
  }
  const text = source.type === "text" ? source.data : joined(source.content);
  return { type: "text", text: title ? `${title}\n\n${text}` : text };
}

function joined(content: string | readonly { text: string }[]): string {
  return typeof content === "string" ? content : content.map(({ text }) => text).join("\n\n");
}

function toAssistant(blocks: readonly AssistantBlock[]): ChatMessage {
  const texts = blocks.filter((block) => block.type === "text");
  const thinkingBlocks = blocks.filter((block) => block.type === "thinking");
  const calls = blocks.filter((block) => block.type === "tool_use");
  return {
    role: "assistant",
    content: toText(texts),
    reasoning:
      thinkingBlocks.length > 0 ? thinkingBlocks.map(({ thinking }) => thinking).join("\n\n") : undefined,
    toolCalls:
      calls.length > 0
        ? calls.map(({ id, name, input }) => ({ id, name, arguments: JSON.stringify(input ?? {}) }))
        : undefined,
  };
}

function toTools(body: MessageRequest): {
  tools: ToolDefinition[];
  toolChoice: ToolChoice;
  parallelToolCalls: boolean;
} {
  const choice = body.tool_choice ?? { type: "auto" as const };
  return {
    tools: (body.tools ?? []).map(({ name, description, input_schema: parameters }) => ({
      name,
      description: description ?? undefined,
      parameters,
    })),
    toolChoice: toToolChoice(choice),
    parallelToolCalls: choice.type === "none" || !choice.disable_parallel_tool_use,
  };
}

function toToolChoice(choice: NonNullable<MessageRequest["tool_choice"]>): ToolChoice {
  if (choice.type === "tool") return { name: choice.name };
  return choice.type === "any" ? "required" : choice.type;
}

/** The API's default effort. */
const DEFAULT_EFFORT = "high";

/**
 * Thinking is off unless requested, as other clients do not expect thinking blocks. Adaptive thinking is passed as an
 * effort, which models that cannot think ignore.
 */
function toThinking({ thinking, output_config: output }: MessageRequest): {
  thinking?: boolean;
  templateVariables?: Record<string, unknown>;
} {
  const isAdaptive = thinking?.type === "adaptive";
  const effort = output?.effort ?? (isAdaptive ? DEFAULT_EFFORT : undefined);
  return {
    ...(!isAdaptive && { thinking: thinking?.type === "enabled" }),
    ...(effort !== undefined && { templateVariables: { reasoning_effort: effort } }),
  };
}
