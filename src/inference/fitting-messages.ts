import type { ChatMessage } from "../engine/protocol/generation.ts";
import type { TemplateTraits } from "./template-traits.ts";

/** Messages as the family of a template needs them. */
export function fittingMessages(
  messages: readonly ChatMessage[],
  { oneCallPerMessage = false, textStart }: TemplateTraits,
): readonly ChatMessage[] {
  const single = oneCallPerMessage ? withOneCallEach(messages) : messages;
  const last = single.at(-1);
  if (textStart === undefined || last?.role !== "assistant") return single;
  const [first, ...rest] = last.content;
  const begun = first?.type === "text" ? [{ ...first, text: textStart + first.text }, ...rest] : last.content;
  return [...single.slice(0, -1), { ...last, content: begun }];
}

/** Several calls in a message become several messages, each followed by its result. */
function withOneCallEach(messages: readonly ChatMessage[]): ChatMessage[] {
  const results = new Set<ChatMessage>();
  return messages.flatMap((message, at) => {
    if (results.has(message)) return [];
    const { toolCalls = [] } = message;
    if (toolCalls.length < 2) return [message];
    const behind = messages.slice(at + 1);
    const end = behind.findIndex(({ role }) => role !== "tool");
    const answers = end < 0 ? behind : behind.slice(0, end);
    return toolCalls.flatMap((call, index) => {
      const result = answers.find(({ toolCallId }) => toolCallId === call.id) ?? answers[index];
      if (result && results.has(result)) return [];
      if (result) results.add(result);
      const said = index === 0 ? message : { role: message.role, content: [] };
      return [{ ...said, toolCalls: [call] }, ...(result ? [result] : [])];
    });
  });
}
