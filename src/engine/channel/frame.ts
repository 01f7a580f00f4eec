/** Received data that is not a valid message. The message of the error is a predicate whose subject is the data. */
export class ChannelError extends Error {}

/**
 * Layout of a message in a pipe; all numbers are little-endian:
 *
 *   1 byte   kind of message
 *   1 byte   {@link LAYOUT}
 *   2 bytes  number of attachments
 *   4 bytes  length of the JSON
 *   4 bytes  length of all attachments together
 *   then the length of each attachment (4 bytes each), the JSON in UTF-8, and the attachments.
 */
const HEADER_BYTES = 12;

/** Version of the layout, which also detects data that is not a frame. */
const LAYOUT = 0xd1;

const LENGTH_BYTES = 4;

/**
 * Initial buffer for a frame that arrives in chunks. It grows with the received data, not with the announced length.
 */
const INITIAL_BUFFER_BYTES = 4096;

export interface Frame {
  readonly kind: number;
  /** JSON in UTF-8. Like the attachments, it is valid until the reader is used again. */
  readonly json: Uint8Array;
  readonly attachments: readonly Uint8Array[];
}

export interface FrameLimits {
  /** Bytes of JSON. */
  readonly json: number;
  readonly attachments: number;
  /** Bytes of all attachments together. */
  readonly binary: number;
}

/** Encodes a frame up to the end of its JSON. The caller writes the attachments after it. */
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

/** Splits the data of a pipe into frames. Buffers at most one frame and one chunk of the pipe. */
export class FrameReader {
  readonly #limitsOf: (kind: number) => FrameLimits | undefined;
  #buffer: Buffer = Buffer.alloc(0);
  /** True if this reader has allocated the buffer. A chunk from the pipe must not be written to. */
  #ownsBuffer = false;
  #start = 0;
  #end = 0;

  /** @param limitsOf returns the limits of a kind of message, or undefined for an unknown kind */
  constructor(limitsOf: (kind: number) => FrameLimits | undefined) {
    this.#limitsOf = limitsOf;
  }

  push(chunk: Buffer): void {
    if (this.#start === this.#end) {
      this.#buffer = chunk;
      this.#ownsBuffer = false;
      this.#start = 0;
      this.#end = chunk.length;
      return;
    }
    if (!this.#ownsBuffer || this.#buffer.length - this.#end < chunk.length) {
      const bufferedBytes = this.#end - this.#start;
      const grown = Buffer.allocUnsafe(Math.max(INITIAL_BUFFER_BYTES, 2 * (bufferedBytes + chunk.length)));
      this.#buffer.copy(grown, 0, this.#start, this.#end);
      this.#buffer = grown;
      this.#ownsBuffer = true;
      this.#start = 0;
      this.#end = bufferedBytes;
    }
    chunk.copy(this.#buffer, this.#end);
    this.#end += chunk.length;
  }

  /**
   * Returns the next frame, or undefined if it is not complete yet.
   * @throws ChannelError if the data is not a valid frame
   */
  next(): Frame | undefined {
    const bufferedBytes = this.#end - this.#start;
    if (bufferedBytes < HEADER_BYTES) return undefined;
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
    if (bufferedBytes < total) return undefined;
    const frame = this.#buffer.subarray(this.#start, this.#start + total);
    this.#start += total;
    const jsonEnd = HEADER_BYTES + lengths + jsonBytes;
    return {
      kind,
      json: frame.subarray(HEADER_BYTES + lengths, jsonEnd),
      attachments: splitAttachments(frame.subarray(jsonEnd), frame.subarray(HEADER_BYTES), count),
    };
  }
}

function splitAttachments(binary: Buffer, lengths: Buffer, count: number): Uint8Array[] {
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
