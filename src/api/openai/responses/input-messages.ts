import type { ChatMessage, ContentPart, ToolCall } from "../../../engine/protocol/generation.ts";
import { decodeImage } from "../../../inference/media-data.ts";
import { historyText } from "../../../inference/history-text.ts";
import { encodeInput } from "../custom-tools.ts";
import { unsupported } from "../openai-fields.ts";
import { builtInOutput, fromBuiltInCall } from "./built-in-calls.ts";
import { isMessage, type HistoryItem, type InputItem, type InputPart } from "./input-items.ts";
import { textParts } from "../../chat-input.ts";

/** Item of the assistant: reasoning, text, a tool call, or the call of a hosted tool. */
type AssistantItem = Exclude<InputItem, ClientItem>;
type ClientItem = Extract<
  InputItem,
  | { role: "user" | "system" | "developer" }
  | { type: "function_call_output" | "custom_tool_call_output" }
  | BuiltInOutput
>;
interface BuiltInOutput {
  readonly type: "shell_call_output" | "local_shell_call_output" | "apply_patch_call_output";
}

/** Assistant message under construction, and the kind of its last item. */
interface Turn {
  readonly message: ChatMessage;
  last: "nothing" | "reasoning" | "history" | "text" | "call";
}

/** Types of items without content for the model. */
const IGNORED_TYPES = new Set(["additional_tools", "compaction", "compaction_trigger", "mcp_list_tools"]);

/**
 * Converts items to messages. Reasoning, text and tool calls of one assistant turn are separate items but one message.
 * @param earlier number of items from earlier responses, which come before those of the request's `input`
 */
export function toMessages(items: readonly InputItem[], earlier: number): ChatMessage[] {
  const messages: ChatMessage[] = [];
  let turn: Turn | undefined;
  for (const [index, item] of items.entries()) {
    if (item.type === "history" && IGNORED_TYPES.has(item.item.type)) continue;
    if (isClientItem(item)) {
      messages.push(toMessage(item, `input.${index - earlier}`));
      turn = undefined;
      continue;
    }
    if (item.type === "history" && isFromClient(item)) {
      messages.push({ role: "user", content: [{ type: "text", text: historyText(item.item) }] });
      turn = undefined;
      continue;
    }
    const kind = kindOf(item);
    if (turn === undefined || !continues(turn, kind)) {
      turn = { message: { role: "assistant", content: [] }, last: "nothing" };
      messages.push(turn.message);
    }
    addItem(turn.message, item);
    turn.last = kind;
  }
  return messages;
}

function isClientItem(item: InputItem): item is ClientItem {
  if (isMessage(item)) return item.role !== "assistant";
  return item.type !== "history" && item.type.endsWith("_output");
}

/** True for an item of a hosted tool that the client produces, such as a screenshot or an approval. */
function isFromClient({ item: { type } }: HistoryItem): boolean {
  return type.endsWith("_call_output") || type === "mcp_approval_response";
}

function kindOf(item: AssistantItem): Turn["last"] {
  if (isMessage(item)) return "text";
  return item.type === "reasoning" || item.type === "history" ? item.type : "call";
}

/**
 * True if an item belongs to the same turn. Calls follow text; reasoning or text after text or calls starts a new turn.
 */
function continues({ last }: Turn, kind: Turn["last"]): boolean {
  if (kind === "call") return true;
  return kind === "history" ? last !== "call" : last !== "text" && last !== "call";
}

function addItem(message: ChatMessage, item: AssistantItem): void {
  if (item.type === "reasoning") {
    const reasoning = [...(item.summary ?? []), ...(item.content ?? [])].map(({ text }) => text);
    if (reasoning.length > 0) message.reasoning = [message.reasoning ?? [], reasoning].flat().join("\n\n");
  } else if (item.type === "history") {
    message.content.push({ type: "text", text: historyText(item.item) });
  } else if (isMessage(item)) {
    message.content.push(...textParts(item.content));
  } else {
    message.toolCalls ??= [];
    message.toolCalls.push(toToolCall(item));
  }
}

function toToolCall(
  item: Exclude<AssistantItem, { type: "reasoning" | "history" } | { role: "assistant" }>,
): ToolCall {
  if (item.type === "function_call") {
    return { id: item.call_id, name: item.name, arguments: item.arguments };
  }
  if (item.type === "custom_tool_call") {
    return { id: item.call_id, name: item.name, arguments: encodeInput(item.input) };
  }
  return fromBuiltInCall(item);
}

function toMessage(item: ClientItem, param: string): ChatMessage {
  if (isMessage(item)) {
    return item.role === "user"
      ? { role: "user", content: toContent(item.content, `${param}.content`) }
      : { role: "system", content: textParts(item.content) };
  }
  if (item.type === "function_call_output" || item.type === "custom_tool_call_output") {
    return { role: "tool", content: toContent(item.output, `${param}.output`), toolCallId: item.call_id };
  }
  const { callId, text } = builtInOutput(item);
  return { role: "tool", content: textParts(text), toolCallId: callId };
}

function toContent(content: string | readonly InputPart[], param: string): ContentPart[] {
  if (typeof content === "string") return textParts(content);
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
