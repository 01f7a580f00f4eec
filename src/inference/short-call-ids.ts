import type { ChatMessage } from "../engine/protocol/generation.ts";

/** Templates of Mistral's raise an error over ids of any other length. */
const SHORT_IDS = /length\s*(?:!=|==)\s*9\b/;
const SHORT_ID = /^[A-Za-z0-9]{9}$/;

/**
 * Messages whose call ids a template accepts that wants nine letters or digits. A call and its result have the same
 * id afterwards too, and a longer conversation the same ids as its beginning had.
 */
export function withShortCallIds(
  messages: readonly ChatMessage[],
  template: string | undefined,
): readonly ChatMessage[] {
  if (template === undefined || !SHORT_IDS.test(template)) return messages;
  const given = new Map<string, string>();
  const shortId = (id: string): string => {
    if (SHORT_ID.test(id)) return id;
    const short = given.get(id) ?? `call${String(given.size).padStart(5, "0")}`;
    given.set(id, short);
    return short;
  };
  return messages.map((message) => ({
    ...message,
    ...(message.toolCalls && {
      toolCalls: message.toolCalls.map((call) => ({ ...call, id: shortId(call.id) })),
    }),
    ...(message.toolCallId !== undefined && { toolCallId: shortId(message.toolCallId) }),
  }));
}
