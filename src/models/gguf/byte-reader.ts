import type { FileHandle } from "node:fs/promises";

/** Bytes read at once: a header of a large vocabulary is then some thirty reads. */
const CHUNK_SIZE = 256 * 1024;

/** The file ends, or the reader's limit is reached, before what its own numbers promise. */
export class EndOfDataError extends Error {
  override readonly name = "EndOfDataError";
}

/**
 * Reads little-endian numbers one after another from a file, with one buffer of fixed size: whatever the file
 * claims, no more memory is taken. Reading past `limit` throws EndOfDataError.
 */
export class ByteReader {
  readonly #file: FileHandle;
  readonly #limit: number;
  readonly #buffer = Buffer.alloc(CHUNK_SIZE);
  /** File position of the buffer's first byte, and how many of its bytes are filled. */
  #start = 0;
  #filled = 0;
  #position = 0;

  constructor(file: FileHandle, limit: number) {
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

  /** True when the next `count` bytes are in the buffer, so that the synchronous getters may be used. */
  has(count: number): boolean {
    return this.#position + count <= this.#start + this.#filled;
  }

  /** Brings the next `count` bytes (at most the buffer's size) into the buffer. */
  async need(count: number): Promise<void> {
    if (count > this.remaining) throw new EndOfDataError();
    if (this.has(count)) return;
    this.#start = this.#position;
    this.#filled = 0;
    const wanted = Math.min(CHUNK_SIZE, this.remaining);
    while (this.#filled < count) {
      const { bytesRead } = await this.#file.read(
        this.#buffer,
        this.#filled,
        wanted - this.#filled,
        this.#start + this.#filled,
      );
      if (bytesRead === 0) throw new EndOfDataError();
      this.#filled += bytesRead;
    }
  }

  /** The methods below are synchronous: `need` has been called for their bytes. */
  u8(): number {
    return this.#buffer.readUInt8(this.#advance(1));
  }

  u32(): number {
    return this.#buffer.readUInt32LE(this.#advance(4));
  }

  /** An unsigned 64-bit integer; inexact above 2^53, where every caller's limit has long been passed. */
  u64(): number {
    const at = this.#advance(8);
    return this.#buffer.readUInt32LE(at) + this.#buffer.readUInt32LE(at + 4) * 2 ** 32;
  }

  bytes(count: number): Buffer {
    const at = this.#advance(count);
    return this.#buffer.subarray(at, at + count);
  }

  /** Goes on `count` bytes further, without reading them. */
  skip(count: number): void {
    if (count > this.remaining) throw new EndOfDataError();
    this.#position += count;
  }

  /** Reads `length` bytes into a new buffer; the caller has bounded the length. */
  async read(length: number): Promise<Buffer> {
    if (length > this.remaining) throw new EndOfDataError();
    const result = Buffer.alloc(length);
    for (let done = 0; done < length;) {
      const step = Math.min(CHUNK_SIZE, length - done);
      await this.need(step);
      this.bytes(step).copy(result, done);
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

/** What is wrong with a GGUF file, in words that complete "… cannot be used: ". */
export class InvalidGguf extends Error {
  override readonly name = "InvalidGguf";
}

/** A number that a header claims, for people; none that makes sense is beyond 2^53. */
export function claimed(count: number): string {
  return Number.isSafeInteger(count) ? String(count) : "impossibly many";
}

/** Longest part of a name that a message shows: a damaged file has some of many kilobytes. */
const SHOWN_CHARACTERS = 80;

/** A name from a file, for people. */
export function quoted(name: string): string {
  const shown = JSON.stringify(name.slice(0, SHOWN_CHARACTERS));
  return name.length > SHOWN_CHARACTERS ? `${shown} …` : shown;
}
