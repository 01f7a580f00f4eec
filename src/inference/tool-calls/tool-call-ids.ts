import type { ChatMessage } from "../../engine/protocol/generation.ts";

/** Creates a random id for a tool call. */
export function randomCallId(): string {
  return `call_${crypto.randomUUID().replaceAll("-", "")}`;
}

/** Finds the check in Mistral's templates that rejects ids of any other length than 9. */
const SHORT_IDS = /length\s*(?:!=|==)\s*9\b/;
const SHORT_ID = /^[A-Za-z0-9]{9}$/;

/**
 * Replaces call ids by ones of nine letters or digits, if the template requires them. A call and its result get the
 * same id, and a continued conversation gets the same ids as before.
 */
export function withShortCallIds(
  messages: readonly ChatMessage[],
  template: string | undefined,
): readonly ChatMessage[] {
  if (template === undefined || !SHORT_IDS.test(template)) return messages;
  const shortIds = new Map<string, string>();
  const shortId = (id: string): string => {
    if (SHORT_ID.test(id)) return id;
    const short = shortIds.get(id) ?? `call${String(shortIds.size).padStart(5, "0")}`;
    shortIds.set(id, short);
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
