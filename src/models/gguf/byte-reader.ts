/** Longest part of a name that a message shows: a damaged file has some of many kilobytes. */
const SHOWN_CHARACTERS = 80;

/** Bytes read at once: a header of a large vocabulary is then some thirty reads. */
const CHUNK_SIZE = 256 * 1024;

/** A file, wherever it lies. */
export interface ByteSource {
  /** Fills a part of the target with the bytes from a position on; returns how many there were, 0 at the end. */
  read(target: Uint8Array, position: number): Promise<number>;
}

const DECODER = new TextDecoder("utf-8", { ignoreBOM: true });

/** Text from a file; what is not UTF-8 becomes U+FFFD. */
export function decodeText(bytes: Uint8Array): string {
  return DECODER.decode(bytes);
}

/**
 * Reads little-endian numbers one after another from a file, with one buffer of fixed size: whatever the file
 * claims, no more memory is taken. Reading past `limit` throws InvalidGguf.
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

  /** True when the next `count` bytes are in the buffer, so that the synchronous getters may be used. */
  has(count: number): boolean {
    return this.#position + count <= this.#start + this.#filled;
  }

  /** Brings the next `count` bytes (at most the buffer's size) into the buffer. */
  async need(count: number): Promise<void> {
    if (count > this.remaining) throw truncated();
    if (this.has(count)) return;
    this.#start = this.#position;
    this.#filled = 0;
    const wanted = Math.min(CHUNK_SIZE, this.remaining);
    while (this.#filled < count) {
      const rest = this.#buffer.subarray(this.#filled, wanted);
      const bytesRead = await this.#file.read(rest, this.#start + this.#filled);
      if (bytesRead === 0) throw truncated();
      this.#filled += bytesRead;
    }
  }

  /** The methods below are synchronous: `need` has been called for their bytes. */
  u8(): number {
    return this.#view.getUint8(this.#advance(1));
  }

  u32(): number {
    return this.#view.getUint32(this.#advance(4), true);
  }

  /** An unsigned 64-bit integer; inexact above 2^53, where every caller's limit has long been passed. */
  u64(): number {
    const at = this.#advance(8);
    return this.#view.getUint32(at, true) + this.#view.getUint32(at + 4, true) * 2 ** 32;
  }

  bytes(count: number): Uint8Array {
    const at = this.#advance(count);
    return this.#buffer.subarray(at, at + count);
  }

  /** Goes on `count` bytes further, without reading them. */
  skip(count: number): void {
    if (count > this.remaining) throw truncated();
    this.#position += count;
  }

  /** Reads `length` bytes into a new buffer; the caller has bounded the length. */
  async read(length: number): Promise<Uint8Array> {
    if (length > this.remaining) throw truncated();
    const result = new Uint8Array(length);
    for (let done = 0; done < length;) {
      const step = Math.min(CHUNK_SIZE, length - done);
      await this.need(step);
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

/** What is wrong with a GGUF file, in words that complete "… cannot be used: ". */
export class InvalidGguf extends Error {
  override readonly name = "InvalidGguf";
}

/** A number that a header claims, for people; none that makes sense is beyond 2^53. */
export function claimed(count: number): string {
  return Number.isSafeInteger(count) ? String(count) : "impossibly many";
}

/** A name from a file, for people. */
export function quoted(name: string): string {
  const shown = JSON.stringify(name.slice(0, SHOWN_CHARACTERS));
  return name.length > SHOWN_CHARACTERS ? `${shown} …` : shown;
}

/** The file ends, or the reader's limit is reached, before what its own numbers promise. */
function truncated(): InvalidGguf {
  return new InvalidGguf("it is truncated or damaged");
}
