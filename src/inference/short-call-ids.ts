import { createHash } from "node:crypto";
import type { ChatMessage } from "../engine/protocol/generation.ts";

/** Templates of Mistral's raise an error over ids of any other length. */
const SHORT_IDS = /length\s*(?:!=|==)\s*9\b/;
const ID_LENGTH = 9;

/**
 * Messages whose call ids a template accepts that wants nine letters or digits. A call and its result have the same
 * id afterwards too.
 */
export function withShortCallIds(
  messages: readonly ChatMessage[],
  template: string | undefined,
): readonly ChatMessage[] {
  if (template === undefined || !SHORT_IDS.test(template)) return messages;
  return messages.map((message) => ({
    ...message,
    ...(message.toolCalls && {
      toolCalls: message.toolCalls.map((call) => ({ ...call, id: shortId(call.id) })),
    }),
    ...(message.toolCallId !== undefined && { toolCallId: shortId(message.toolCallId) }),
  }));
}

function shortId(id: string): string {
  return /^[A-Za-z0-9]{9}$/.test(id) ? id : createHash("sha256").update(id).digest("hex").slice(0, ID_LENGTH);
}
