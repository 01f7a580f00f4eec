import { ServiceError } from "../errors/service-error.ts";
import { decodeDataUrl } from "./data-url.ts";

/** First bytes of the image formats that engines read; undefined stands for any byte. */
const SIGNATURES: readonly (readonly (number | undefined)[])[] = [
  [0x89, 0x50, 0x4e, 0x47], // PNG
  [0xff, 0xd8, 0xff], // JPEG
  [0x47, 0x49, 0x46, 0x38], // GIF
  [0x42, 0x4d], // BMP
  [...bytesOf("RIFF"), undefined, undefined, undefined, undefined, ...bytesOf("WEBP")],
];

/**
 * Decodes an image from base64 or a data: URL.
 * @param param path of the field, for the error
 * @throws ServiceError invalid_parameter for a URL (the daemon fetches nothing), and for what is not base64 or
 * not a PNG, JPEG, GIF, BMP or WebP
 */
export function decodeImage(text: string, param: string): Uint8Array<ArrayBuffer> {
  if (/^https?:/i.test(text)) {
    throw invalid(param, "the daemon does not fetch URLs; send the image itself as base64 or a data: URL");
  }
  const bytes = decodeDataUrl(text);
  if (!bytes) throw invalid(param, "must be an image as base64 or a data: URL");
  return checkImage(bytes, param);
}

/**
 * An image of a format that engines read.
 * @throws ServiceError invalid_parameter
 */
export function checkImage(bytes: Uint8Array<ArrayBuffer>, param: string): Uint8Array<ArrayBuffer> {
  const known = SIGNATURES.some((signature) =>
    signature.every((byte, index) => byte === undefined || bytes[index] === byte),
  );
  if (!known) throw invalid(param, "must be a PNG, JPEG, GIF, BMP or WebP image");
  return bytes;
}

function bytesOf(text: string): number[] {
  return Array.from(text, (character) => character.charCodeAt(0));
}

function invalid(param: string, what: string): ServiceError {
  return new ServiceError("invalid_parameter", `${param}: ${what}.`, { param });
}
