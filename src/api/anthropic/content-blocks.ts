import { z } from "zod";
import { optional } from "../../http/input/common-fields.ts";
import type { ChatMessage, ContentPart } from "../../engine/protocol/generation.ts";
import { ServiceError } from "../../errors/service-error.ts";
import { list } from "../../http/input/bounded-lists.ts";
import { historyText } from "../../inference/history-text.ts";
import { decodeBase64, decodeImage, encodeBase64 } from "../../inference/media-data.ts";
import { textParts } from "../chat-input.ts";

export const textBlock = z.object({ type: z.literal("text"), text: z.string() });

const imageBlock = z.object({
  type: z.literal("image"),
  source: z.discriminatedUnion("type", [
    z.object({ type: z.literal("base64"), media_type: z.string(), data: z.string() }),
    z
      .object({ type: z.literal("url"), url: z.string() })
      .describe("A data: URL; remote URLs are not fetched."),
  ]),
});

const documentBlock = z.object({
  type: z.literal("document"),
  title: z.string().nullish(),
  source: z.discriminatedUnion("type", [
    z.object({ type: z.literal("text"), data: z.string() }),
    z.object({ type: z.literal("content"), content: z.union([z.string(), list(textBlock)]) }),
    z.looseObject({ type: z.enum(["base64", "url", "file"]) }).describe("Refused: PDFs are not supported."),
  ]),
});

const searchResultBlock = z.object({
  type: z.literal("search_result"),
  title: z.string(),
  source: z.string(),
  content: list(textBlock),
});

/**
 * Types of blocks that only Anthropic's servers produce, such as those of server-side tools. A client that switches
 * servers in the middle of a conversation sends them to this one.
 */
const HISTORY_BLOCK =
  /_tool_use$|_tool_result$|^(?:container_upload|tool_reference|browser_state|compaction|fallback|tool_addition|tool_removal|mcp_tool_listing)$/;

const historyBlock = z
  .looseObject({ type: z.string().refine((type) => HISTORY_BLOCK.test(type), { abort: true }) })
  .describe("A block of a server-side tool; the model reads it as text.")
  .transform((block) => ({ type: "history" as const, text: historyText(block) }));

const toolResultBlock = z.union([
  z.discriminatedUnion("type", [textBlock, imageBlock, documentBlock, searchResultBlock]),
  historyBlock,
]);
type ToolResultBlock = z.output<typeof toolResultBlock>;

/** Content block of a message of any role. */
export const contentBlock = z.union([
  z.discriminatedUnion("type", [
    textBlock,
    imageBlock,
    documentBlock,
    searchResultBlock,
    z.object({
      type: z.literal("thinking"),
      thinking: z.string(),
      signature: optional(z.string(), "Not checked."),
    }),
    z.object({ type: z.literal("redacted_thinking"), data: z.string() }).describe("Accepted and ignored."),
    z.object({
      type: z.literal("tool_use"),
      id: z.string(),
      name: z.string(),
      input: z.unknown().describe("The arguments as an object."),
    }),
    z.object({
      type: z.literal("tool_result"),
      tool_use_id: z.string().describe("ID of the call this is the result of."),
      content: z.union([z.string(), list(toolResultBlock)]).nullish(),
      is_error: z.boolean().nullish(),
    }),
  ]),
  historyBlock,
]);
type Block = z.output<typeof contentBlock>;

/**
 * Prefixes of signatures. Clients send thinking blocks back with their signature unchanged. It is not verified. The
 * signature of a block with omitted text contains the text, for chat templates that include earlier thinking.
 */
const SIGNATURE_PREFIX = "daybreak:";
const TEXT_SIGNATURE_PREFIX = "daybreak-text:";

export function signThinking(thinking: string): string {
  return btoa(`${SIGNATURE_PREFIX}${thinking.length}`);
}

/** Returns the signature of a block with omitted text: the encoded text. */
export function signOmittedThinking(thinking: string): string {
  return encodeBase64(new TextEncoder().encode(TEXT_SIGNATURE_PREFIX + thinking));
}

/** Returns the text in a signature of {@link signOmittedThinking}; empty for any other signature. */
function omittedThinking(signature: string): string {
  const text = new TextDecoder().decode(decodeBase64(signature));
  return text.startsWith(TEXT_SIGNATURE_PREFIX) ? text.slice(TEXT_SIGNATURE_PREFIX.length) : "";
}

type ToolResult = Extract<Block, { type: "tool_result" }>;

/**
 * Converts a user's blocks to messages: each tool result becomes a separate message.
 * @param isUnanswered true if no assistant message follows. Then a binary document is refused; otherwise the model
 *   reads a text that describes the block, because the conversation has gone on without it.
 */
export function toUserMessages(
  blocks: readonly Block[],
  param: string,
  isUnanswered: boolean,
): ChatMessage[] {
  const messages: ChatMessage[] = [];
  for (const [at, block] of blocks.entries()) {
    const blockParam = `${param}.${at}`;
    if (block.type === "tool_result") {
      messages.push(toToolMessage(block, blockParam));
      continue;
    }
    if (isUnanswered && isBinaryDocument(block)) {
      throw new ServiceError("unsupported_feature", "Only plain-text documents are supported.", {
        param: `${blockParam}.source`,
      });
    }
    const last = messages.at(-1);
    if (last?.role === "user") last.content.push(toPart(block, blockParam));
    else messages.push({ role: "user", content: [toPart(block, blockParam)] });
  }
  return messages.length > 0 ? messages : [{ role: "user", content: [] }];
}

function toToolMessage(block: ToolResult, param: string): ChatMessage {
  const { content } = block;
  const parts =
    typeof content === "string"
      ? textParts(content)
      : (content ?? []).map((part, at) => toPart(part, `${param}.content.${at}`));
  // Chat templates have no error flag, so a label in the text marks the error.
  const errorLabel: ContentPart[] = block.is_error ? [{ type: "text", text: "Error:" }] : [];
  return { role: "tool", content: [...errorLabel, ...parts], toolCallId: block.tool_use_id };
}

function toPart(block: Block | ToolResultBlock, param: string): ContentPart {
  if (block.type === "image") {
    const { source } = block;
    return source.type === "base64"
      ? { type: "image", data: decodeImage(source.data, `${param}.source.data`) }
      : { type: "image", data: decodeImage(source.url, `${param}.source.url`) };
  }
  return { type: "text", text: blockText(block) };
}

/** Converts an assistant's blocks to one message. Blocks without a counterpart become text. */
export function toAssistant(blocks: readonly Block[]): ChatMessage {
  const content: ContentPart[] = [];
  const thoughts: string[] = [];
  const toolCalls: NonNullable<ChatMessage["toolCalls"]> = [];
  for (const block of blocks) {
    if (block.type === "thinking") thoughts.push(block.thinking || omittedThinking(block.signature ?? ""));
    else if (block.type === "tool_use") {
      const { id, name, input } = block;
      toolCalls.push({ id, name, arguments: JSON.stringify(input ?? {}) });
    } else if (block.type !== "redacted_thinking") content.push({ type: "text", text: blockText(block) });
  }
  const reasoning = thoughts.filter((text) => text !== "").join("\n\n");
  return {
    role: "assistant",
    content,
    reasoning: reasoning === "" ? undefined : reasoning,
    toolCalls: toolCalls.length > 0 ? toolCalls : undefined,
  };
}

function blockText(block: Block | ToolResultBlock): string {
  if (block.type === "text" || block.type === "history") return block.text;
  if (block.type === "search_result")
    return [block.title, block.source, joinTexts(block.content)].join("\n\n");
  if (block.type !== "document") return historyText(block);
  const { source, title } = block;
  if (source.type !== "text" && source.type !== "content") return historyText(block);
  const text = source.type === "text" ? source.data : joinTexts(source.content);
  return title ? `${title}\n\n${text}` : text;
}

function isBinaryDocument(block: Block): boolean {
  return block.type === "document" && block.source.type !== "text" && block.source.type !== "content";
}

function joinTexts(content: string | readonly { text: string }[]): string {
  return typeof content === "string" ? content : content.map(({ text }) => text).join("\n\n");
}
