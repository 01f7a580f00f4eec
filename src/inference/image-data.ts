import { ServiceError } from "../errors/service-error.ts";

const DATA_URL = /^data:([\w.+-]+\/[\w.+-]+)?(?:;[\w.+-]+=[^;,]*)*;base64,/i;
const BASE64 = /^[A-Za-z0-9+/]*={0,2}$/;
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
  const encoded = text.slice(DATA_URL.exec(text.slice(0, 200))?.[0].length ?? 0).replaceAll(/\s/g, "");
  if (encoded === "" || !BASE64.test(encoded))
    throw invalid(param, "must be a picture as base64 or a data: URL");
  // A copy: small Buffers share their memory with others.
  const bytes = new Uint8Array(Buffer.from(encoded, "base64"));
  const known = SIGNATURES.some((signature) => signature.every((byte, index) => bytes[index] === byte));
  if (!known) throw invalid(param, "must be a PNG, JPEG, GIF or BMP");
  return bytes;
}

function invalid(param: string, what: string): ServiceError {
  return new ServiceError("invalid_parameter", `${param}: ${what}.`, { param });
}
