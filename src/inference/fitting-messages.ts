import type { ChatMessage } from "../engine/protocol/generation.ts";
import type { TemplateTraits } from "./template-traits.ts";

/** Messages as the family of a template needs them. */
export function fittingMessages(
  messages: readonly ChatMessage[],
  { oneCallPerMessage = false, textStart }: TemplateTraits,
): readonly ChatMessage[] {
  const whole = messages.length > 1 && isEmpty(messages.at(-1)) ? messages.slice(0, -1) : messages;
  const single = oneCallPerMessage ? withOneCallEach(whole) : whole;
  const last = single.at(-1);
  if (textStart === undefined || last?.role !== "assistant") return single;
  const [first, ...rest] = last.content;
  const begun = first?.type === "text" ? [{ ...first, text: textStart + first.text }, ...rest] : last.content;
  return [...single.slice(0, -1), { ...last, content: begun }];
}

/** With nothing to go on with, llama.cpp would leave out that the assistant speaks now. */
function isEmpty(message: ChatMessage | undefined): boolean {
  if (message?.role !== "assistant" || message.reasoning || message.toolCalls?.length) return false;
  return message.content.every((part) => part.type === "text" && part.text === "");
}

/** Several calls in a message become several messages, each followed by its result. */
function withOneCallEach(messages: readonly ChatMessage[]): ChatMessage[] {
  const fitting: ChatMessage[] = [];
  const used = new Set<ChatMessage>();
  for (const [at, message] of messages.entries()) {
    const { toolCalls = [], ...said } = message;
    if (used.has(message)) continue;
    if (toolCalls.length < 2) {
      fitting.push(message);
      continue;
    }
    const behind = messages.slice(at + 1);
    const end = behind.findIndex(({ role }) => role !== "tool");
    const answers = end < 0 ? behind : behind.slice(0, end);
    for (const [index, call] of toolCalls.entries()) {
      const first = index === 0 ? said : { role: message.role, content: [] };
      fitting.push({ ...first, toolCalls: [call] });
      const result = answers.find(({ toolCallId }) => toolCallId === call.id);
      if (!result || used.has(result)) continue;
      used.add(result);
      fitting.push(result);
    }
  }
  return fitting;
}
