import { ServiceError } from "../../errors/service-error.ts";
import type { ContentPart, GenerationRequest } from "../protocol/generation.ts";
import type { EnginePlatform, Pixels } from "./platform.ts";

/**
 * Converts the WebP images of a request to BMP, because llama.cpp does not support WebP.
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
    // Sequentially, because each conversion may use 100 MB.
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
  // A different size means that the decoder has read a different image than readWebp().
  if (pixels.width !== width || pixels.height !== height) throw damagedWebp();
  return { type: "image", data: toBmp(pixels) };
}

/**
 * Reader of the WebP container, which has RIFF chunks: https://developers.google.com/speed/webp/docs/riff_container.
 * Reads only the size of an image and the first frame of an animation.
 */

/** Maximum pixels of an image, which take one second and 100 MB to decode. */
const MAX_PIXELS = 32 * 1024 * 1024;

/** "RIFF", a length, "WEBP". */
const HEADER_BYTES = 12;
/** A name and a length. */
const CHUNK_HEADER_BYTES = 8;
/** Position, size, duration and flags of an animation's frame, before its chunks. */
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
  readonly bytes: Uint8Array<ArrayBuffer>;
  readonly data: Uint8Array<ArrayBuffer>;
}

interface StillWebp {
  readonly width: number;
  readonly height: number;
  readonly file: Uint8Array<ArrayBuffer>;
}

function isWebp(file: Uint8Array): boolean {
  return nameAt(file, 0) === "RIFF" && nameAt(file, 8) === "WEBP";
}

/**
 * Returns the size of an image and the image itself, or the first frame of an animation.
 * @throws ServiceError invalid_parameter for a damaged file, and for one with too many pixels
 */
function readWebp(file: Uint8Array<ArrayBuffer>): StillWebp {
  const chunks = [...readChunks(file.subarray(HEADER_BYTES))];
  const frame = chunks.find(({ name }) => name === "ANMF");
  if (!frame) return checkPixelCount({ ...sizeOf(chunks), file });
  const inner = [...readChunks(frame.data.subarray(FRAME_HEADER_BYTES))];
  return checkPixelCount({ ...sizeOf(inner), file: toFile(inner) });
}

function damagedWebp(cause?: unknown): ServiceError {
  return new ServiceError(
    "invalid_parameter",
    "The WebP image is damaged and cannot be read; send it again, or as PNG or JPEG.",
    { cause },
  );
}

function checkPixelCount(image: StillWebp): StillWebp {
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
    const chunk = bytes.subarray(at, end);
    yield { name: nameAt(bytes, at), bytes: chunk, data: chunk.subarray(CHUNK_HEADER_BYTES) };
    // Chunks begin at even offsets.
    at = end + (length % 2);
  }
}

/** Reads the size from the bitstream, because the size in other chunks may be wrong. */
function sizeOf(chunks: readonly Chunk[]): { width: number; height: number } {
  const bitstream = chunks.find(({ name }) => name === "VP8 " || name === "VP8L");
  if (!bitstream || bitstream.data.length < VP8_SIZE_AT + 4) throw damagedWebp();
  const view = viewOf(bitstream.data);
  if (bitstream.name === "VP8L") {
    const bits = view.getUint32(VP8L_SIGNATURE_BYTES, true);
    return { width: (bits & SIZE_MASK) + 1, height: ((bits >>> SIZE_BITS) & SIZE_MASK) + 1 };
  }
  const width = view.getUint16(VP8_SIZE_AT, true) & SIZE_MASK;
  const height = view.getUint16(VP8_SIZE_AT + 2, true) & SIZE_MASK;
  if (width === 0 || height === 0) throw damagedWebp();
  return { width, height };
}

/** Builds a file from the chunks of a frame. */
function toFile(chunks: readonly Chunk[]): Uint8Array<ArrayBuffer> {
  const parts = chunks.filter(({ name }) => name === "ALPH" || name === "VP8 " || name === "VP8L");
  const { width, height } = sizeOf(parts);
  const hasAlpha = parts.some(({ name }) => name === "ALPH");
  const padded = parts.map(({ bytes }) => pad(bytes));
  const all = hasAlpha ? [extendedHeader(width, height), ...padded] : padded;
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

function extendedHeader(width: number, height: number): Uint8Array<ArrayBuffer> {
  const chunk = new Uint8Array(CHUNK_HEADER_BYTES + EXTENDED_BYTES);
  writeName(chunk, 0, "VP8X");
  const view = viewOf(chunk);
  view.setUint32(4, EXTENDED_BYTES, true);
  view.setUint32(8, HAS_ALPHA, true);
  // Width and height minus one, in 24 bits each.
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

const BMP_HEADER_BYTES = 54;
const BMP_INFO_BYTES = 40;
const BITS_PER_PIXEL = 24;
const WHITE = 255;

/** Encodes a BMP file of 24 bits per pixel, the format that is fastest to read. Transparent pixels become white. */
function toBmp({ width, height, data }: Pixels): Uint8Array<ArrayBuffer> {
  const rowBytes = Math.ceil((width * 3) / 4) * 4;
  const bmp = new Uint8Array(BMP_HEADER_BYTES + rowBytes * height);
  const view = new DataView(bmp.buffer);
  bmp.set([0x42, 0x4d]);
  view.setUint32(2, bmp.length, true);
  view.setUint32(10, BMP_HEADER_BYTES, true);
  view.setUint32(14, BMP_INFO_BYTES, true);
  view.setInt32(18, width, true);
  // Rows from the top have a negative height.
  view.setInt32(22, -height, true);
  view.setUint16(26, 1, true);
  view.setUint16(28, BITS_PER_PIXEL, true);
  let from = 0;
  for (let row = 0; row < height; row += 1) {
    let to = BMP_HEADER_BYTES + row * rowBytes;
    for (let column = 0; column < width; column += 1) {
      const opacity = data[from + 3]!;
      bmp[to++] = blendOnWhite(data[from + 2]!, opacity);
      bmp[to++] = blendOnWhite(data[from + 1]!, opacity);
      bmp[to++] = blendOnWhite(data[from]!, opacity);
      from += 4;
    }
  }
  return bmp;
}

function blendOnWhite(color: number, opacity: number): number {
  return opacity === WHITE ? color : Math.round((color * opacity + WHITE * (WHITE - opacity)) / WHITE);
}
