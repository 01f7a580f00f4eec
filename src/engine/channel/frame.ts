/** The other process, which is not trusted, sent something that is not a message. */
export class ChannelError extends Error {}

/**
 * How a message lies in a pipe, all numbers in the machine's own order, which both ends share:
 *
 *   1 byte   kind of the message
 *   1 byte   {@link LAYOUT}
 *   2 bytes  number of attachments
 *   4 bytes  bytes of JSON
 *   4 bytes  bytes of all attachments
 *   then 4 bytes with its length for each attachment, the JSON in UTF-8, and the attachments
 */
const HEADER_BYTES = 12;

/** Changes with the layout: what is not written by this program is noticed at its first bytes. */
const LAYOUT = 0xd1;

const LENGTH_BYTES = 4;

/** Room for a frame that comes in pieces grows from here by doubling: a length that is announced costs nothing. */
const FIRST_ROOM_BYTES = 4096;

export interface Frame {
  readonly kind: number;
  /** Text in UTF-8; valid until the reader is used again, as the attachments are. */
  readonly json: Uint8Array;
  readonly attachments: readonly Uint8Array[];
}

/** Largest parts that a frame may have. */
export interface FrameLimits {
  /** Bytes of JSON. */
  readonly json: number;
  readonly attachments: number;
  /** Bytes of all attachments together. */
  readonly binary: number;
}

/** The first part of a frame, up to and with the JSON; the attachments follow it as they are. */
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

/** Cuts what comes out of a pipe into frames. Holds no more than one frame and one piece of the pipe. */
export class FrameReader {
  readonly #limitsOf: (kind: number) => FrameLimits | undefined;
  #buffer: Buffer = Buffer.alloc(0);
  /** The buffer is ours to write to, not a piece of the pipe. */
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
   * The next frame, or undefined when it is not all there.
   * @throws ChannelError for what no frame of ours looks like
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
    if (!limits || header.readUInt8(1) !== LAYOUT) throw new ChannelError("does not begin like any message");
    if (jsonBytes > limits.json) throw new ChannelError(`announces ${jsonBytes} bytes of JSON`);
    if (binary > limits.binary) throw new ChannelError(`announces ${binary} bytes beside its JSON`);
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
    if (end > binary.length) throw new ChannelError("has attachments longer than it announced");
    attachments.push(binary.subarray(start, end));
    start = end;
  }
  if (start !== binary.length) throw new ChannelError("has bytes that belong to no attachment");
  return attachments;
}
