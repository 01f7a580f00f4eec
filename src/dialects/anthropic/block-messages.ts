import type { ChatMessage, ContentPart } from "../../engine/protocol/generation.ts";
import { ServiceError } from "../../errors/service-error.ts";
import { historyText } from "../../inference/history-text.ts";
import { decodeImage } from "../../inference/image-data.ts";
import type { Block, ResultBlock } from "./content-blocks.ts";
import { omittedThinking } from "./thinking-signature.ts";

type ToolResult = Extract<Block, { type: "tool_result" }>;

export function toText(content: string | readonly { text: string }[]): ContentPart[] {
  if (typeof content === "string") return content === "" ? [] : [{ type: "text", text: content }];
  return content.map(({ text }) => ({ type: "text", text }));
}

/**
 * The messages of a user's blocks: each tool result is a message of its own.
 * @param isNew whether no answer follows: then a document that cannot be read is refused, and otherwise mentioned
 */
export function toUserMessages(blocks: readonly Block[], param: string, isNew: boolean): ChatMessage[] {
  const messages: ChatMessage[] = [];
  for (const [at, block] of blocks.entries()) {
    const place = `${param}.${at}`;
    if (block.type === "tool_result") {
      messages.push(toToolMessage(block, place));
      continue;
    }
    if (isNew && isUnreadable(block)) {
      throw new ServiceError("unsupported_feature", "Only plain-text documents are supported.", {
        param: `${place}.source`,
      });
    }
    const last = messages.at(-1);
    if (last?.role === "user") last.content.push(toPart(block, place));
    else messages.push({ role: "user", content: [toPart(block, place)] });
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

function toPart(block: Block | ResultBlock, param: string): ContentPart {
  if (block.type === "image") {
    const { source } = block;
    return source.type === "base64"
      ? { type: "image", data: decodeImage(source.data, `${param}.source.data`) }
      : { type: "image", data: decodeImage(source.url, `${param}.source.url`) };
  }
  return { type: "text", text: textOf(block) };
}

/** One message of an assistant's blocks. What has no place in it, it has as text. */
export function toAssistant(blocks: readonly Block[]): ChatMessage {
  const content: ContentPart[] = [];
  const thoughts: string[] = [];
  const toolCalls: NonNullable<ChatMessage["toolCalls"]> = [];
  for (const block of blocks) {
    if (block.type === "thinking") thoughts.push(block.thinking || omittedThinking(block.signature ?? ""));
    else if (block.type === "tool_use") {
      const { id, name, input } = block;
      toolCalls.push({ id, name, arguments: JSON.stringify(input ?? {}) });
    } else if (block.type !== "redacted_thinking") content.push({ type: "text", text: textOf(block) });
  }
  const reasoning = thoughts.filter((text) => text !== "").join("\n\n");
  return {
    role: "assistant",
    content,
    reasoning: reasoning === "" ? undefined : reasoning,
    toolCalls: toolCalls.length > 0 ? toolCalls : undefined,
  };
}

function textOf(block: Block | ResultBlock): string {
  if (block.type === "text" || block.type === "history") return block.text;
  if (block.type === "search_result") return [block.title, block.source, joined(block.content)].join("\n\n");
  if (block.type !== "document") return historyText(block);
  const { source, title } = block;
  if (source.type !== "text" && source.type !== "content") return historyText(block);
  const text = source.type === "text" ? source.data : joined(source.content);
  return title ? `${title}\n\n${text}` : text;
}

function isUnreadable(block: Block): boolean {
  return block.type === "document" && block.source.type !== "text" && block.source.type !== "content";
}

function joined(content: string | readonly { text: string }[]): string {
  return typeof content === "string" ? content : content.map(({ text }) => text).join("\n\n");
}
