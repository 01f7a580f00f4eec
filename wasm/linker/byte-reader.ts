/** Reads WebAssembly's binary encodings from a byte array, front to back. */
export class ByteReader {
  readonly bytes: Uint8Array;
  readonly end: number;
  offset: number;

  constructor(bytes: Uint8Array, start = 0, end = bytes.length) {
    if (start < 0 || start > end || end > bytes.length) throw new RangeError("section lies outside the file");
    this.bytes = bytes;
    this.offset = start;
    this.end = end;
  }

  get done(): boolean {
    return this.offset >= this.end;
  }

  u8(): number {
    if (this.offset >= this.end) throw new RangeError(`unexpected end at byte ${this.offset}`);
    return this.bytes[this.offset++]!;
  }

  /** An unsigned LEB128 number. Memory64 limits fit a double exactly; larger ones throw. */
  uleb(): number {
    let value = 0;
    let scale = 1;
    for (;;) {
      const byte = this.u8();
      value += (byte & 0x7f) * scale;
      if (!Number.isSafeInteger(value)) throw new RangeError(`number too large at byte ${this.offset}`);
      if (byte < 0x80) return value;
      scale *= 0x80;
    }
  }

  /** A signed LEB128 number, as in relocation addends. */
  sleb(): number {
    let value = 0n;
    let shift = 0n;
    for (;;) {
      const byte = this.u8();
      value |= BigInt(byte & 0x7f) << shift;
      shift += 7n;
      if (byte < 0x80) return Number(byte & 0x40 ? value - (1n << shift) : value);
    }
  }

  /** Skips `length` bytes and returns them without copying. */
  take(length: number): Uint8Array {
    if (this.offset + length > this.end) throw new RangeError(`unexpected end at byte ${this.offset}`);
    const start = this.offset;
    this.offset += length;
    return this.bytes.subarray(start, this.offset);
  }

  name(): string {
    return new TextDecoder("utf-8", { fatal: true }).decode(this.take(this.uleb()));
  }
}
