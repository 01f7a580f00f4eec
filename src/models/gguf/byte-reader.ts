/** Maximum characters of a name in a message: damaged files have names of many kilobytes. */
const MAX_QUOTED_LENGTH = 80;

/** Bytes per read; a header with a large vocabulary takes some thirty reads. */
const CHUNK_SIZE = 256 * 1024;

/** A file on disk or in memory. */
export interface ByteSource {
  /** Reads bytes from a position into the target; returns their number, 0 at the end of the file. */
  read(target: Uint8Array, position: number): Promise<number>;
}

const DECODER = new TextDecoder("utf-8", { ignoreBOM: true });

/** Decodes text; invalid UTF-8 becomes U+FFFD. */
export function decodeText(bytes: Uint8Array): string {
  return DECODER.decode(bytes);
}

/**
 * Reads little-endian numbers from a file in sequence, with one buffer of fixed size, whatever lengths the file claims.
 * Reading past `limit` throws InvalidGguf.
 */
export class ByteReader {
  readonly #file: ByteSource;
  readonly #limit: number;
  readonly #buffer = new Uint8Array(CHUNK_SIZE);
  readonly #view = new DataView(this.#buffer.buffer);
  /** File position of the buffer's first byte, and how many of its bytes are filled. */
  #start = 0;
  #filled = 0;
  #position = 0;

  constructor(file: ByteSource, limit: number) {
    this.#file = file;
    this.#limit = limit;
  }

  get position(): number {
    return this.#position;
  }

  /** Bytes that may still be read. */
  get remaining(): number {
    return this.#limit - this.#position;
  }

  /** True if the next `count` bytes are buffered, so that the synchronous methods may be called. */
  has(count: number): boolean {
    return this.#position + count <= this.#start + this.#filled;
  }

  /** Buffers the next `count` bytes, at most the buffer's size. */
  async ensure(count: number): Promise<void> {
    if (count > this.remaining) throw truncated();
    if (this.has(count)) return;
    this.#start = this.#position;
    this.#filled = 0;
    const wanted = Math.min(CHUNK_SIZE, this.remaining);
    while (this.#filled < count) {
      const free = this.#buffer.subarray(this.#filled, wanted);
      const bytesRead = await this.#file.read(free, this.#start + this.#filled);
      if (bytesRead === 0) throw truncated();
      this.#filled += bytesRead;
    }
  }

  /** The synchronous methods below require a call of `ensure` for their bytes. */
  u32(): number {
    return this.#view.getUint32(this.#advance(4), true);
  }

  /** Reads an unsigned 64-bit integer; inexact above 2^53, which exceeds all limits of callers. */
  u64(): number {
    const at = this.#advance(8);
    return this.#view.getUint32(at, true) + this.#view.getUint32(at + 4, true) * 2 ** 32;
  }

  bytes(count: number): Uint8Array {
    const at = this.#advance(count);
    return this.#buffer.subarray(at, at + count);
  }

  /** Skips `count` bytes without reading them. */
  skip(count: number): void {
    if (count > this.remaining) throw truncated();
    this.#position += count;
  }

  /** Reads `length` bytes into a new buffer; the caller limits the length. */
  async read(length: number): Promise<Uint8Array> {
    if (length > this.remaining) throw truncated();
    const result = new Uint8Array(length);
    for (let done = 0; done < length;) {
      const step = Math.min(CHUNK_SIZE, length - done);
      await this.ensure(step);
      result.set(this.bytes(step), done);
      done += step;
    }
    return result;
  }

  #advance(count: number): number {
    const at = this.#position - this.#start;
    this.#position += count;
    return at;
  }
}

/** A GGUF file is unusable. The message completes "… cannot be used: ". */
export class InvalidGguf extends Error {
  override readonly name = "InvalidGguf";
}

/** Formats a count from a header for messages; no sensible one exceeds 2^53. */
export function claimed(count: number): string {
  return Number.isSafeInteger(count) ? String(count) : "impossibly many";
}

/** Quotes a name from a file for messages. */
export function quoted(name: string): string {
  const quotedStart = JSON.stringify(name.slice(0, MAX_QUOTED_LENGTH));
  return name.length > MAX_QUOTED_LENGTH ? `${quotedStart} …` : quotedStart;
}

/** Creates the error for a file that is shorter than its header claims. */
function truncated(): InvalidGguf {
  return new InvalidGguf("it is truncated or damaged");
}
