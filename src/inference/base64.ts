const ALPHABET = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
const DIGITS = new TextEncoder().encode(ALPHABET);
const PADDING = "=".charCodeAt(0);

/** Built into browsers and Node 25, but not Node 24. */
interface BuiltIn {
  readonly BYTES_PER_ELEMENT: number;
  fromBase64?(text: string): Uint8Array<ArrayBuffer>;
}

/** Decodes base64, which may have line breaks; undefined if the text is empty or not valid base64. */
export function decodeBase64(text: string): Uint8Array<ArrayBuffer> | undefined {
  const digits = text.trimEnd().replace(/={1,2}$/, "");
  try {
    const bytes = decodeDigits(digits);
    return bytes.byteLength === 0 ? undefined : bytes;
  } catch {
    return undefined;
  }
}

function decodeDigits(digits: string): Uint8Array<ArrayBuffer> {
  const builtIn: BuiltIn = Uint8Array;
  if (builtIn.fromBase64) return builtIn.fromBase64(digits);
  const binary = atob(digits);
  const bytes = new Uint8Array(binary.length);
  for (let at = 0; at < binary.length; at += 1) bytes[at] = binary.charCodeAt(at);
  return bytes;
}

export function encodeBase64(bytes: Uint8Array): string {
  const text = new Uint8Array(Math.ceil(bytes.length / 3) * 4);
  let at = 0;
  for (let from = 0; from < bytes.length; from += 3) {
    const group = (bytes[from]! << 16) | ((bytes[from + 1] ?? 0) << 8) | (bytes[from + 2] ?? 0);
    text[at++] = DIGITS[group >> 18]!;
    text[at++] = DIGITS[(group >> 12) & 63]!;
    text[at++] = DIGITS[(group >> 6) & 63]!;
    text[at++] = DIGITS[group & 63]!;
  }
  const missing = (3 - (bytes.length % 3)) % 3;
  text.fill(PADDING, text.length - missing);
  return new TextDecoder().decode(text);
}
