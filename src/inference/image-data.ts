import { ServiceError } from "../errors/service-error.ts";

const DATA_URL = /^data:([\w.+-]+\/[\w.+-]+)?(?:;[\w.+-]+=[^;,]*)*;base64,/i;
/** Lines of base64 are 64 or 76 characters long, and may be indented. */
const LEAST_SHARE_OF_DIGITS = 0.5;
/** First bytes of the kinds of pictures that llama.cpp decodes. */
const SIGNATURES: readonly (readonly number[])[] = [
  [0x89, 0x50, 0x4e, 0x47], // PNG
  [0xff, 0xd8, 0xff], // JPEG
  [0x47, 0x49, 0x46, 0x38], // GIF
  [0x42, 0x4d], // BMP
];

/**
 * Decodes a picture that a request carries as base64, alone or as a data: URL.
 * @param param path of the field, for the error
 * @throws ServiceError invalid_parameter for an address (the daemon fetches nothing), for what is not base64 and
 * for what is no PNG, JPEG, GIF or BMP
 */
export function decodeImage(text: string, param: string): Uint8Array<ArrayBuffer> {
  if (/^https?:/i.test(text)) {
    throw invalid(param, "the daemon fetches no addresses; send the picture itself as base64 or a data: URL");
  }
  const encoded = text.slice(DATA_URL.exec(text.slice(0, 200))?.[0].length ?? 0);
  const bytes = decodeBase64(encoded) ?? decodeLines(encoded);
  if (!bytes) throw invalid(param, "must be a picture as base64 or a data: URL");
  const known = SIGNATURES.some((signature) => signature.every((byte, index) => bytes[index] === byte));
  if (!known) throw invalid(param, "must be a PNG, JPEG, GIF or BMP");
  return bytes;
}

/** Base64 in lines, which is rare: to take the blanks out takes longer than to decode, so no text of blanks is searched. */
function decodeLines(encoded: string): Uint8Array<ArrayBuffer> | undefined {
  const mostBytes = (encoded.length * 3) / 4;
  if (Buffer.from(encoded, "base64").byteLength < mostBytes * LEAST_SHARE_OF_DIGITS) return undefined;
  return decodeBase64(encoded.replaceAll(/\s+/g, ""));
}

/** Undefined for what is empty or not base64 throughout: of that, Buffer would leave out what it cannot read. */
function decodeBase64(encoded: string): Uint8Array<ArrayBuffer> | undefined {
  const padding = encoded.endsWith("==") ? 2 : encoded.endsWith("=") ? 1 : 0;
  const isUrlSafe = encoded.includes("-") || encoded.includes("_");
  const decoded = Buffer.from(encoded, "base64");
  const digits = encoded.length - padding;
  if (digits === 0 || isUrlSafe || decoded.byteLength !== Math.floor((digits * 3) / 4)) return undefined;
  // Small Buffers share their memory with others: those are copied.
  const { buffer, byteLength } = decoded;
  return buffer instanceof ArrayBuffer && buffer.byteLength === byteLength
    ? new Uint8Array(buffer)
    : new Uint8Array(decoded);
}

function invalid(param: string, what: string): ServiceError {
  return new ServiceError("invalid_parameter", `${param}: ${what}.`, { param });
}
