/** The other process, which is not trusted, sent something that is not a message. */
export class ChannelError extends Error {}

/**
 * Layout of a message in a pipe; all numbers are little-endian:
 *
 *   1 byte   kind of message
 *   1 byte   {@link LAYOUT}
 *   2 bytes  number of attachments
 *   4 bytes  length of the JSON
 *   4 bytes  length of all attachments together
 *   then the length of each attachment (4 bytes each), the JSON in UTF-8, and the attachments
 */
const HEADER_BYTES = 12;

/** Changes with the layout, so that foreign data is detected in its first bytes. */
const LAYOUT = 0xd1;

const LENGTH_BYTES = 4;

/** Initial buffer for a frame that arrives in pieces. It grows with what arrives, not with the length announced. */
const FIRST_ROOM_BYTES = 4096;

export interface Frame {
  readonly kind: number;
  /** Text in UTF-8. Like the attachments, it is valid until the reader is used again. */
  readonly json: Uint8Array;
  readonly attachments: readonly Uint8Array[];
}

/** Largest sizes of the parts of a frame. */
export interface FrameLimits {
  /** Bytes of JSON. */
  readonly json: number;
  readonly attachments: number;
  /** Bytes of all attachments together. */
  readonly binary: number;
}

/** Encodes a frame up to the end of its JSON; the attachments are written after it as they are. */
export function encodeFrame(kind: number, json: string, attachments: readonly Uint8Array[]): Buffer {
  const jsonBytes = Buffer.byteLength(json);
  const lengthsEnd = HEADER_BYTES + attachments.length * LENGTH_BYTES;
  const frame = Buffer.allocUnsafe(lengthsEnd + jsonBytes);
  let binary = 0;
  attachments.forEach(({ byteLength }, index) => {
    frame.writeUInt32LE(byteLength, HEADER_BYTES + index * LENGTH_BYTES);
    binary += byteLength;
  });
  frame.writeUInt8(kind, 0);
  frame.writeUInt8(LAYOUT, 1);
  frame.writeUInt16LE(attachments.length, 2);
  frame.writeUInt32LE(jsonBytes, 4);
  frame.writeUInt32LE(binary, 8);
  frame.write(json, lengthsEnd);
  return frame;
}

/** Splits the data of a pipe into frames. Buffers at most one frame and one chunk. */
export class FrameReader {
  readonly #limitsOf: (kind: number) => FrameLimits | undefined;
  #buffer: Buffer = Buffer.alloc(0);
  /** The buffer is our own, not a chunk from the pipe, so it may be written to. */
  #isOwn = false;
  #start = 0;
  #end = 0;

  /** @param limitsOf limits of a kind of message; undefined for an unknown kind */
  constructor(limitsOf: (kind: number) => FrameLimits | undefined) {
    this.#limitsOf = limitsOf;
  }

  push(piece: Buffer): void {
    if (this.#start === this.#end) {
      this.#buffer = piece;
      this.#isOwn = false;
      this.#start = 0;
      this.#end = piece.length;
      return;
    }
    if (!this.#isOwn || this.#buffer.length - this.#end < piece.length) {
      const held = this.#end - this.#start;
      const room = Buffer.allocUnsafe(Math.max(FIRST_ROOM_BYTES, 2 * (held + piece.length)));
      this.#buffer.copy(room, 0, this.#start, this.#end);
      this.#buffer = room;
      this.#isOwn = true;
      this.#start = 0;
      this.#end = held;
    }
    piece.copy(this.#buffer, this.#end);
    this.#end += piece.length;
  }

  /**
   * The next frame, or undefined when it is not complete yet.
   * @throws ChannelError when the data is not a valid frame
   */
  next(): Frame | undefined {
    const held = this.#end - this.#start;
    if (held < HEADER_BYTES) return undefined;
    const header = this.#buffer.subarray(this.#start, this.#start + HEADER_BYTES);
    const kind = header.readUInt8(0);
    const count = header.readUInt16LE(2);
    const jsonBytes = header.readUInt32LE(4);
    const binary = header.readUInt32LE(8);
    const limits = this.#limitsOf(kind);
    if (!limits || header.readUInt8(1) !== LAYOUT) throw new ChannelError("does not begin like a message");
    if (jsonBytes > limits.json) throw new ChannelError(`announces ${jsonBytes} bytes of JSON`);
    if (binary > limits.binary) throw new ChannelError(`announces ${binary} bytes of attachments`);
    if (count > limits.attachments) throw new ChannelError(`announces ${count} attachments`);
    const lengths = count * LENGTH_BYTES;
    const total = HEADER_BYTES + lengths + jsonBytes + binary;
    if (held < total) return undefined;
    const frame = this.#buffer.subarray(this.#start, this.#start + total);
    this.#start += total;
    const jsonEnd = HEADER_BYTES + lengths + jsonBytes;
    return {
      kind,
      json: frame.subarray(HEADER_BYTES + lengths, jsonEnd),
      attachments: cut(frame.subarray(jsonEnd), frame.subarray(HEADER_BYTES), count),
    };
  }
}

function cut(binary: Buffer, lengths: Buffer, count: number): Uint8Array[] {
  const attachments: Uint8Array[] = [];
  let start = 0;
  for (let index = 0; index < count; index += 1) {
    const end = start + lengths.readUInt32LE(index * LENGTH_BYTES);
    if (end > binary.length) throw new ChannelError("has attachments that are longer than announced");
    attachments.push(binary.subarray(start, end));
    start = end;
  }
  if (start !== binary.length) throw new ChannelError("has bytes that do not belong to an attachment");
  return attachments;
}
