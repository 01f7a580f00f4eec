import type { ChatMessage } from "../../engine/protocol/generation.ts";

/** An id for a tool call that the engine did not name. */
export function randomCallId(): string {
  return `call_${crypto.randomUUID().replaceAll("-", "")}`;
}

/** Mistral's templates raise an error for ids of any other length. */
const SHORT_IDS = /length\s*(?:!=|==)\s*9\b/;
const SHORT_ID = /^[A-Za-z0-9]{9}$/;

/**
 * Messages with call ids of nine letters or digits, as some templates require. A call and its result keep the same id, and
 * a continued conversation has the same ids as before.
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
