import type { ChatMessage, ContentPart } from "../../../engine/protocol/generation.ts";
import { decodeImage } from "../../../inference/image-data.ts";
import { toTextContent, unsupported } from "../openai-request-fields.ts";
import type { InputItem, InputPart } from "./input-items.ts";

type AssistantItem = Extract<InputItem, { role: "assistant" } | { type: "reasoning" | "function_call" }>;

/**
 * Converts items to messages. The assistant's reasoning, text and calls of one turn are separate items, but one message.
 * @param earlier how many of the items come from earlier responses instead of the request's `input`
 */
export function toMessages(items: readonly InputItem[], earlier: number): ChatMessage[] {
  const messages: ChatMessage[] = [];
  let turn: ChatMessage | undefined;
  for (const [index, item] of items.entries()) {
    if (!isAssistantItem(item)) {
      messages.push(toMessage(item, `input.${index - earlier}`));
      turn = undefined;
      continue;
    }
    if (turn === undefined || !continues(turn, item)) {
      turn = { role: "assistant", content: [] };
      messages.push(turn);
    }
    extend(turn, item);
  }
  return messages;
}

function isAssistantItem(item: InputItem): item is AssistantItem {
  if (item.type === "function_call_output") return false;
  return item.type === "reasoning" || item.type === "function_call" || item.role === "assistant";
}

/** Calls come after text; reasoning or text that comes after text or calls starts a new turn. */
function continues(turn: ChatMessage, item: AssistantItem): boolean {
  return item.type === "function_call" || (turn.content.length === 0 && turn.toolCalls === undefined);
}

function extend(turn: ChatMessage, item: AssistantItem): void {
  if (item.type === "function_call") {
    turn.toolCalls ??= [];
    turn.toolCalls.push({ id: item.call_id, name: item.name, arguments: item.arguments });
  } else if (item.type === "reasoning") {
    const reasoning = [...(item.summary ?? []), ...(item.content ?? [])].map(({ text }) => text);
    if (reasoning.length > 0) turn.reasoning = [turn.reasoning ?? [], reasoning].flat().join("\n\n");
  } else {
    turn.content.push(...toTextContent(item.content));
  }
}

function toMessage(item: Exclude<InputItem, AssistantItem>, param: string): ChatMessage {
  if (item.type === "function_call_output") {
    return { role: "tool", content: toContent(item.output, `${param}.output`), toolCallId: item.call_id };
  }
  if (item.role === "user") return { role: "user", content: toContent(item.content, `${param}.content`) };
  return { role: "system", content: toTextContent(item.content) };
}

function toContent(content: string | readonly InputPart[], param: string): ContentPart[] {
  if (typeof content === "string") return toTextContent(content);
  return content.map((part, at) => {
    if (part.type === "input_file") {
      throw unsupported("File input is not supported; send text or images.", `${param}.${at}`);
    }
    if (part.type !== "input_image") return { type: "text", text: part.text };
    if (part.image_url == null) {
      throw unsupported(
        "Stored files are not supported; send the image as a data: URL in image_url.",
        `${param}.${at}`,
      );
    }
    return { type: "image", data: decodeImage(part.image_url, `${param}.${at}.image_url`) };
  });
}
