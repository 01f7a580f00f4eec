import { ServiceError } from "../../errors/service-error.ts";
import type { ContentPart, GenerationRequest } from "../protocol/generation.ts";
import { type EnginePlatform, toBmp } from "./platform.ts";

/**
 * A request whose images llama.cpp can read: it does not know WebP.
 * @throws ServiceError invalid_parameter for a damaged image, and for one with too many pixels
 */
export async function withReadableImages(
  request: GenerationRequest,
  decodeWebp: EnginePlatform["decodeWebp"],
): Promise<GenerationRequest> {
  const { input } = request;
  if (input.kind !== "chat" || !input.messages.some(({ content }) => content.some(isUnreadable)))
    return request;
  const messages: typeof input.messages = [];
  for (const message of input.messages) {
    const content: ContentPart[] = [];
    // One after another, as each takes a hundred megabytes for a moment.
    for (const part of message.content)
      content.push(isUnreadable(part) ? await toReadable(part, decodeWebp) : part);
    messages.push(Object.assign({}, message, { content }));
  }
  return { ...request, input: { ...input, messages } };
}

type ImagePart = Extract<ContentPart, { type: "image" }>;

function isUnreadable(part: ContentPart): part is ImagePart {
  return part.type === "image" && isWebp(part.data);
}

async function toReadable({ data }: ImagePart, decodeWebp: EnginePlatform["decodeWebp"]): Promise<ImagePart> {
  const { file, width, height } = readWebp(Uint8Array.from(data));
  const pixels = await decodeWebp(file).catch((error: unknown) => {
    throw damagedWebp(error);
  });
  // A decoder that has read another size has read something else.
  if (pixels.width !== width || pixels.height !== height) throw damagedWebp();
  return { type: "image", data: toBmp(pixels) };
}

/**
 * The container of WebP: RIFF chunks, as in https://developers.google.com/speed/webp/docs/riff_container. Only what is
 * needed to know an image's size and to take the first frame of an animation is read here.
 */

/** Cameras have up to about 50 million; this many take a second and a hundred megabytes. */
const MAX_PIXELS = 32 * 1024 * 1024;

/** "RIFF", a length, "WEBP". */
const HEADER_BYTES = 12;
/** A name and a length. */
const CHUNK_HEADER_BYTES = 8;
/** Place, size, duration and flags of an animation's frame, before its chunks. */
const FRAME_HEADER_BYTES = 16;
const EXTENDED_BYTES = 10;
const HAS_ALPHA = 0x10;
const VP8L_SIGNATURE_BYTES = 1;
/** The frame tag and the start code. */
const VP8_SIZE_AT = 6;
const SIZE_BITS = 14;
const SIZE_MASK = (1 << SIZE_BITS) - 1;

interface Chunk {
  readonly name: string;
  /** The chunk with its header. */
  readonly whole: Uint8Array<ArrayBuffer>;
  readonly data: Uint8Array<ArrayBuffer>;
}

/** An image that is not animated. */
interface StillWebp {
  readonly width: number;
  readonly height: number;
  readonly file: Uint8Array<ArrayBuffer>;
}

export function isWebp(file: Uint8Array): boolean {
  return nameAt(file, 0) === "RIFF" && nameAt(file, 8) === "WEBP";
}

/**
 * The size of an image, and the image itself, or the first frame of an animation.
 * @throws ServiceError invalid_parameter for a damaged file, and for one with too many pixels
 */
export function readWebp(file: Uint8Array<ArrayBuffer>): StillWebp {
  const chunks = [...readChunks(file.subarray(HEADER_BYTES))];
  const frame = chunks.find(({ name }) => name === "ANMF");
  if (!frame) return checked({ ...sizeOf(chunks), file });
  const inner = [...readChunks(frame.data.subarray(FRAME_HEADER_BYTES))];
  return checked({ ...sizeOf(inner), file: toFile(inner) });
}

/** The error for a file that cannot be decoded. */
function damagedWebp(cause?: unknown): ServiceError {
  return new ServiceError(
    "invalid_parameter",
    "The WebP image is damaged and cannot be read; send it again, or as PNG or JPEG.",
    { cause },
  );
}

function checked(image: StillWebp): StillWebp {
  if (image.width * image.height <= MAX_PIXELS) return image;
  throw new ServiceError(
    "invalid_parameter",
    `The WebP image has ${image.width} × ${image.height} pixels, and may have at most ${MAX_PIXELS}; make it smaller.`,
  );
}

function* readChunks(bytes: Uint8Array<ArrayBuffer>): Generator<Chunk, void, undefined> {
  for (let at = 0; at + CHUNK_HEADER_BYTES <= bytes.length;) {
    const length = viewOf(bytes).getUint32(at + 4, true);
    const end = at + CHUNK_HEADER_BYTES + length;
    if (end > bytes.length) throw damagedWebp();
    const whole = bytes.subarray(at, end);
    yield { name: nameAt(bytes, at), whole, data: whole.subarray(CHUNK_HEADER_BYTES) };
    // Chunks begin at even places.
    at = end + (length % 2);
  }
}

/** Of the picture itself: what is said elsewhere need not be true. */
function sizeOf(chunks: readonly Chunk[]): { width: number; height: number } {
  const picture = chunks.find(({ name }) => name === "VP8 " || name === "VP8L");
  if (!picture || picture.data.length < VP8_SIZE_AT + 4) throw damagedWebp();
  const view = viewOf(picture.data);
  if (picture.name === "VP8L") {
    const bits = view.getUint32(VP8L_SIGNATURE_BYTES, true);
    return { width: (bits & SIZE_MASK) + 1, height: ((bits >>> SIZE_BITS) & SIZE_MASK) + 1 };
  }
  const width = view.getUint16(VP8_SIZE_AT, true) & SIZE_MASK;
  const height = view.getUint16(VP8_SIZE_AT + 2, true) & SIZE_MASK;
  if (width === 0 || height === 0) throw damagedWebp();
  return { width, height };
}

/** A file of the chunks of a frame. */
function toFile(chunks: readonly Chunk[]): Uint8Array<ArrayBuffer> {
  const parts = chunks.filter(({ name }) => name === "ALPH" || name === "VP8 " || name === "VP8L");
  const { width, height } = sizeOf(parts);
  const hasAlpha = parts.some(({ name }) => name === "ALPH");
  const padded = parts.map(({ whole }) => pad(whole));
  const all = hasAlpha ? [extended(width, height), ...padded] : padded;
  const length = all.reduce((sum, { length: bytes }) => sum + bytes, 0);
  const file = new Uint8Array(HEADER_BYTES + length);
  writeName(file, 0, "RIFF");
  viewOf(file).setUint32(4, 4 + length, true);
  writeName(file, 8, "WEBP");
  let at = HEADER_BYTES;
  for (const part of all) {
    file.set(part, at);
    at += part.length;
  }
  return file;
}

function pad(chunk: Uint8Array<ArrayBuffer>): Uint8Array<ArrayBuffer> {
  if (chunk.length % 2 === 0) return chunk;
  const padded = new Uint8Array(chunk.length + 1);
  padded.set(chunk);
  return padded;
}

function extended(width: number, height: number): Uint8Array<ArrayBuffer> {
  const chunk = new Uint8Array(CHUNK_HEADER_BYTES + EXTENDED_BYTES);
  writeName(chunk, 0, "VP8X");
  const view = viewOf(chunk);
  view.setUint32(4, EXTENDED_BYTES, true);
  view.setUint32(8, HAS_ALPHA, true);
  // Sizes of 24 bits, less one.
  view.setUint32(12, width - 1, true);
  view.setUint16(15, (height - 1) & 0xffff, true);
  view.setUint8(17, (height - 1) >>> 16);
  return chunk;
}

function nameAt(bytes: Uint8Array, at: number): string {
  return String.fromCharCode(...bytes.subarray(at, at + 4));
}

function writeName(bytes: Uint8Array, at: number, name: string): void {
  for (let index = 0; index < name.length; index += 1) bytes[at + index] = name.charCodeAt(index);
}

function viewOf({ buffer, byteOffset, byteLength }: Uint8Array<ArrayBuffer>): DataView<ArrayBuffer> {
  return new DataView(buffer, byteOffset, byteLength);
}
