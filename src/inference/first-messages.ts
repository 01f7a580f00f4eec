import type { ChatMessage } from "../engine/protocol/generation.ts";
import type { ModelSettings } from "../models/model.ts";

/** A message of text alone; none where there is no text. */
export function textMessage(role: ChatMessage["role"], text: string | undefined): ChatMessage[] {
  return text ? [{ role, content: [{ type: "text", text }] }] : [];
}

/** A chat with the model's own first messages (MESSAGE) behind its system prompt, which is the model's where it has none. */
export function withFirstMessages(
  messages: readonly ChatMessage[],
  { messages: first = [], system }: Pick<ModelSettings, "messages" | "system">,
): readonly ChatMessage[] {
  if (first.length === 0) return messages;
  const begin = messages.findIndex(({ role }) => role !== "system");
  const leading = messages.slice(0, begin < 0 ? messages.length : begin);
  const hasSystem = messages.some(({ role }) => role === "system");
  return [
    ...(hasSystem ? leading : textMessage("system", system)),
    ...first.flatMap(({ role, content }) => textMessage(role, content)),
    ...messages.slice(leading.length),
  ];
}
