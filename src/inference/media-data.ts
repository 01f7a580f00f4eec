import type { MediaPart } from "../engine/protocol/generation.ts";
import { ServiceError } from "../errors/service-error.ts";
import { InvalidAudio, isAudio, readAudio } from "./audio-file.ts";

/**
 * Decodes an image or a recording from base64 or a data: URL.
 * @param param path of the field, for the error
 * @throws ServiceError invalid_parameter
 */
export function decodeMedia(text: string, param: string): MediaPart {
  const bytes = decodeDataUrl(text);
  if (!bytes) return { type: "image", data: decodeImage(text, param) };
  return isAudio(bytes)
    ? { type: "audio", data: checkAudio(bytes, param) }
    : { type: "image", data: checkImage(bytes, param) };
}

/** First bytes of the image formats that engines decode; undefined matches any byte. */
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
 * @throws ServiceError invalid_parameter for a URL (the daemon fetches nothing), invalid base64, or another format than
 *   PNG, JPEG, GIF, BMP or WebP
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
 * Checks that engines can decode the format of an image.
 * @throws ServiceError invalid_parameter
 */
function checkImage(bytes: Uint8Array<ArrayBuffer>, param: string): Uint8Array<ArrayBuffer> {
  const known = SIGNATURES.some((signature) =>
    signature.every((byte, index) => byte === undefined || bytes[index] === byte),
  );
  if (!known) throw invalid(param, "must be a PNG, JPEG, GIF, BMP or WebP image");
  return bytes;
}

function bytesOf(text: string): number[] {
  return Array.from(text, (character) => character.charCodeAt(0));
}

function invalid(param: string, problem: string): ServiceError {
  return new ServiceError("invalid_parameter", `${param}: ${problem}.`, { param });
}

/**
 * Longest recording in a request, in seconds. Decoded to 16,000 samples per second it takes 230 MB in an engine; no
 * supported model has a context for more.
 */
const MAX_SECONDS = 3600;
/** Shortest recording, in seconds: llama.cpp aborts if a recording has only one sample, before or after resampling. */
const MIN_SECONDS = 0.01;

/**
 * Decodes a recording from base64 or a data: URL.
 * @param param path of the field, for the error
 * @throws ServiceError invalid_parameter for a URL (the daemon fetches nothing), invalid base64, or an unusable WAV,
 *   MP3 or FLAC file
 */
export function decodeAudio(text: string, param: string): Uint8Array<ArrayBuffer> {
  if (/^https?:/i.test(text))
    throw invalid(param, "the daemon does not fetch URLs; send the recording itself as base64");
  const bytes = decodeDataUrl(text);
  if (!bytes) throw invalid(param, "must be a recording as base64");
  return checkAudio(bytes, param);
}

/**
 * Checks a recording, and converts it to a form that every engine can decode.
 * @throws ServiceError invalid_parameter
 */
export function checkAudio(bytes: Uint8Array<ArrayBuffer>, param: string): Uint8Array<ArrayBuffer> {
  try {
    const { data, seconds } = readAudio(bytes, MAX_SECONDS);
    if (seconds < MIN_SECONDS) throw new InvalidAudio("it is shorter than 10 milliseconds");
    if (seconds <= MAX_SECONDS) return data;
    throw new InvalidAudio(`it has more than ${MAX_SECONDS / 60} minutes; send it in parts`);
  } catch (error) {
    if (error instanceof InvalidAudio) throw invalid(param, `the recording cannot be used: ${error.message}`);
    throw error;
  }
}

const DATA_URL = /^data:([\w.+-]+\/[\w.+-]+)?(?:;[\w.+-]+=[^;,]*)*;base64,/i;
/** Most characters of a data: URL that are searched for the end of its header. */
const MAX_URL_HEAD = 200;
/** Characters sampled before decoding, at positions unrelated to common line lengths. */
const SAMPLES = 256;
const GOLDEN_RATIO = (Math.sqrt(5) - 1) / 2;
const SPACE = 0x20;

/** Decodes a file from base64 or a data: URL; undefined if the text is neither. */
function decodeDataUrl(text: string): Uint8Array<ArrayBuffer> | undefined {
  const encoded = text.slice(DATA_URL.exec(text.slice(0, MAX_URL_HEAD))?.[0].length ?? 0);
  return isMostlyBlank(encoded) ? undefined : decodeBase64(encoded);
}

/** True if most of a text is whitespace, which the decoder would be slow to skip. */
function isMostlyBlank(encoded: string): boolean {
  let blanks = 0;
  for (let sample = 0; sample < SAMPLES; sample += 1) {
    const position = Math.floor(((sample * GOLDEN_RATIO) % 1) * encoded.length);
    if (encoded.charCodeAt(position) <= SPACE) blanks += 1;
  }
  return blanks > SAMPLES / 2;
}

/** Method of browsers and Node 25 that Node 24 does not have. */
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

/** Bytes that are passed as arguments of one call. */
const CHUNK_BYTES = 8192;

/** Encodes bytes as base64 with padding. */
export function encodeBase64(bytes: Uint8Array): string {
  let binary = "";
  for (let at = 0; at < bytes.length; at += CHUNK_BYTES)
    // Spreading a typed array iterates it, which takes several times as long.
    binary += Reflect.apply(String.fromCharCode, undefined, bytes.subarray(at, at + CHUNK_BYTES));
  return btoa(binary);
}
