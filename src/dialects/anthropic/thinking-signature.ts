import { decodeBase64, encodeBase64 } from "../../inference/base64.ts";

/**
 * Clients send thinking blocks back with their signature, whatever it is. Ours is not checked; that of a block whose text
 * was omitted holds the text, so that templates which keep the thinking of earlier steps get it.
 */
const PREFIX = "daybreak:";
const TEXT_PREFIX = "daybreak-text:";

export function signThinking(thinking: string): string {
  return btoa(`${PREFIX}${thinking.length}`);
}

/** The signature of a block whose text the client does not want to see. */
export function signOmitted(thinking: string): string {
  return encodeBase64(new TextEncoder().encode(TEXT_PREFIX + thinking));
}

/** The text in a signature of {@link signOmitted}; empty for any other signature. */
export function omittedThinking(signature: string): string {
  const text = new TextDecoder().decode(decodeBase64(signature));
  return text.startsWith(TEXT_PREFIX) ? text.slice(TEXT_PREFIX.length) : "";
}
