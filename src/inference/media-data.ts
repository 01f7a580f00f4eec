import type { MediaPart } from "../engine/protocol/generation.ts";
import { ServiceError } from "../errors/service-error.ts";
import { InvalidAudio, isAudio, readAudio } from "./audio-file.ts";

/**
 * Decodes an image or a recording, whichever it is, from base64 or a data: URL.
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

function invalid(param: string, what: string): ServiceError {
  return new ServiceError("invalid_parameter", `${param}: ${what}.`, { param });
}

/**
 * Longest recording in one request, in seconds. At 16,000 samples per second it takes 230 MB in an engine while it is
 * decoded; no model here has a context for more.
 */
const MAX_SECONDS = 3600;
/** llama.cpp ends the engine over a recording of one sample, also where resampling leaves no more; nobody hears less than this. */
const LEAST_SECONDS = 0.01;

/**
 * Decodes a recording from base64 or a data: URL.
 * @param param path of the field, for the error
 * @throws ServiceError invalid_parameter for a URL (the daemon fetches nothing), and for what is not base64 or not a usable
 *   WAV, MP3 or FLAC file
 */
export function decodeAudio(text: string, param: string): Uint8Array<ArrayBuffer> {
  if (/^https?:/i.test(text))
    throw invalid(param, "the daemon does not fetch URLs; send the recording itself as base64");
  const bytes = decodeDataUrl(text);
  if (!bytes) throw invalid(param, "must be a recording as base64");
  return checkAudio(bytes, param);
}

/**
 * A recording in a form that every engine can decode.
 * @throws ServiceError invalid_parameter
 */
export function checkAudio(bytes: Uint8Array<ArrayBuffer>, param: string): Uint8Array<ArrayBuffer> {
  try {
    const { data, seconds } = readAudio(bytes, MAX_SECONDS);
    if (seconds < LEAST_SECONDS) throw new InvalidAudio("it is shorter than 10 milliseconds");
    if (seconds <= MAX_SECONDS) return data;
    throw new InvalidAudio(`it has more than ${MAX_SECONDS / 60} minutes; send it in parts`);
  } catch (error) {
    if (error instanceof InvalidAudio) throw invalid(param, `the recording cannot be used: ${error.message}`);
    throw error;
  }
}

const DATA_URL = /^data:([\w.+-]+\/[\w.+-]+)?(?:;[\w.+-]+=[^;,]*)*;base64,/i;
/** Longest beginning of a data: URL that is looked at. */
const URL_HEAD = 200;
/** Characters sampled before decoding, in steps that are not a multiple of common line lengths. */
const SAMPLES = 256;
const GOLDEN_RATIO = (Math.sqrt(5) - 1) / 2;
const SPACE = 0x20;

/** Decodes a file from base64 or a data: URL; undefined if the text is neither. */
function decodeDataUrl(text: string): Uint8Array<ArrayBuffer> | undefined {
  const encoded = text.slice(DATA_URL.exec(text.slice(0, URL_HEAD))?.[0].length ?? 0);
  return isMostlyBlank(encoded) ? undefined : decodeBase64(encoded);
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
