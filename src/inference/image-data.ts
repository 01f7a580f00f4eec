import { ServiceError } from "../errors/service-error.ts";
import { decodeBase64 } from "./base64.ts";

const DATA_URL = /^data:([\w.+-]+\/[\w.+-]+)?(?:;[\w.+-]+=[^;,]*)*;base64,/i;
/** Characters sampled before decoding, in steps that are not a multiple of common line lengths. */
const SAMPLES = 256;
const GOLDEN_RATIO = (Math.sqrt(5) - 1) / 2;
const SPACE = 0x20;
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
  const encoded = text.slice(DATA_URL.exec(text.slice(0, 200))?.[0].length ?? 0);
  const bytes = isMostlyBlank(encoded) ? undefined : decodeBase64(encoded);
  if (!bytes) throw invalid(param, "must be an image as base64 or a data: URL");
  const known = SIGNATURES.some((signature) =>
    signature.every((byte, index) => byte === undefined || bytes[index] === byte),
  );
  if (!known) throw invalid(param, "must be a PNG, JPEG, GIF, BMP or WebP image");
  return bytes;
}

/** Whether most of a text is whitespace: decoding would search all of it for a few digits. */
function isMostlyBlank(encoded: string): boolean {
  let blanks = 0;
  for (let sample = 0; sample < SAMPLES; sample += 1) {
    const place = Math.floor(((sample * GOLDEN_RATIO) % 1) * encoded.length);
    if (encoded.charCodeAt(place) <= SPACE) blanks += 1;
  }
  return blanks > SAMPLES / 2;
}

function bytesOf(text: string): number[] {
  return Array.from(text, (character) => character.charCodeAt(0));
}

function invalid(param: string, what: string): ServiceError {
  return new ServiceError("invalid_parameter", `${param}: ${what}.`, { param });
}
