import fs from "node:fs";
import { COPY_FORMATS, type CopyType } from "./make-quantized-blocks.ts";

/** GGUF's value types of a fixed size: number in the format, bytes. */
const VALUE_SIZES: Readonly<Record<number, number>> = {
  0: 1,
  1: 1,
  2: 2,
  3: 2,
  4: 4,
  5: 4,
  6: 4,
  7: 1,
  10: 8,
  11: 8,
  12: 8,
};
const STRING_TYPE = 8;
const ARRAY_TYPE = 9;
const ALIGNMENT = 32;
const F32 = 0;
const Q8_0 = 8;

interface TensorInfo {
  readonly name: string;
  /** Fastest dimension first. */
  readonly shape: readonly number[];
  readonly type: number;
  readonly offset: number;
}

/**
 * Copies a model with its Q8_0 matrices in another type, so that a test has small real models of every type.
 * The source must hold nothing but Q8_0 and F32, as the shipped models do.
 *
 * @param type - type of the copy's matrices; rows must be a multiple of 256 for the K types
 * @param typeOf - the type of a matrix by its name, where not all have the same
 */
export function makeQuantized(
  source: string,
  target: string,
  type: CopyType,
  typeOf: (name: string) => CopyType = () => type,
): void {
  const file = fs.readFileSync(source);
  const reader = new GgufReader(file);
  const tensors = reader.tensors.map(({ name, shape, type: oldType, offset }) => {
    const count = shape.reduce((product, length) => product * length, 1);
    const start = reader.dataStart + offset;
    if (oldType === F32) {
      return { name, shape, type: F32, data: file.subarray(start, start + 4 * count) };
    }
    if (oldType !== Q8_0) throw new TypeError(`${name} is neither Q8_0 nor F32`);
    const newType = typeOf(name);
    return { name, shape, type: COPY_FORMATS[newType].id, data: requantize(file, start, count, newType) };
  });
  const head = Buffer.from(file.subarray(0, reader.metadataEnd));
  if (reader.fileTypeAt !== undefined) head.writeUInt32LE(COPY_FORMATS[type].fileType, reader.fileTypeAt);
  fs.writeFileSync(target, Buffer.concat([head, ...describe(tensors), ...layOut(head, tensors)]));
}

function requantize(file: Buffer, start: number, count: number, type: CopyType): Buffer {
  const format = COPY_FORMATS[type];
  const source = new DataView(file.buffer, file.byteOffset + start);
  const out = Buffer.alloc((count / format.weights) * format.bytes);
  const view = new DataView(out.buffer, out.byteOffset, out.length);
  const values = new Float32Array(count);
  const { bytes: blockBytes, weights: blockWeights } = COPY_FORMATS.Q8_0;
  for (let first = 0; first < count; first += blockWeights) {
    const block = (first / blockWeights) * blockBytes;
    const scale = source.getFloat16(block, true);
    for (let index = 0; index < blockWeights; index++)
      values[first + index] = scale * source.getInt8(block + 2 + index);
  }
  for (let block = 0; block < count / format.weights; block++) {
    const weights = values.subarray(block * format.weights, (block + 1) * format.weights);
    format.quantize(weights, view, block * format.bytes);
  }
  return out;
}

interface Tensor extends Omit<TensorInfo, "offset"> {
  readonly data: Buffer;
}

function describe(tensors: readonly Tensor[]): Buffer[] {
  let offset = 0;
  return tensors.map(({ name, shape, type, data }) => {
    const text = Buffer.from(name);
    const info = Buffer.alloc(8 + text.length + 4 + 8 * shape.length + 4 + 8);
    info.writeBigUInt64LE(BigInt(text.length), 0);
    text.copy(info, 8);
    let at = info.writeUInt32LE(shape.length, 8 + text.length);
    for (const length of shape) at = info.writeBigUInt64LE(BigInt(length), at);
    at = info.writeUInt32LE(type, at);
    info.writeBigUInt64LE(BigInt(offset), at);
    offset += padded(data.length);
    return info;
  });
}

/** Padding after the descriptions, then the tensors, each padded. */
function layOut(head: Buffer, tensors: readonly Tensor[]): Buffer[] {
  const described = head.length + describe(tensors).reduce((sum, info) => sum + info.length, 0);
  const padding = Buffer.alloc(padded(described) - described);
  return [padding, ...tensors.flatMap(({ data }) => [data, Buffer.alloc(padded(data.length) - data.length)])];
}

function padded(length: number): number {
  return Math.ceil(length / ALIGNMENT) * ALIGNMENT;
}

/** Finds where things stand in a GGUF file (version 3); the layout is ggml's docs/gguf.md. */
class GgufReader {
  readonly tensors: readonly TensorInfo[];
  /** First byte behind the metadata. */
  readonly metadataEnd: number;
  readonly dataStart: number;
  /** Where general.file_type stands. */
  readonly fileTypeAt: number | undefined;
  readonly #file: Buffer;
  #at = 8;

  constructor(file: Buffer) {
    this.#file = file;
    const tensorCount = this.#size();
    const valueCount = this.#size();
    let fileTypeAt: number | undefined;
    for (let index = 0; index < valueCount; index++) {
      const key = this.#string();
      const type = this.#u32();
      if (key === "general.file_type") fileTypeAt = this.#at;
      this.#skip(type);
    }
    this.fileTypeAt = fileTypeAt;
    this.metadataEnd = this.#at;
    this.tensors = Array.from({ length: tensorCount }, () => ({
      name: this.#string(),
      shape: Array.from({ length: this.#u32() }, () => this.#size()),
      type: this.#u32(),
      offset: this.#size(),
    }));
    this.dataStart = padded(this.#at);
  }

  #u32(): number {
    this.#at += 4;
    return this.#file.readUInt32LE(this.#at - 4);
  }

  #size(): number {
    this.#at += 8;
    return Number(this.#file.readBigUInt64LE(this.#at - 8));
  }

  #string(): string {
    const length = this.#size();
    this.#at += length;
    return this.#file.toString("utf8", this.#at - length, this.#at);
  }

  #skip(type: number): void {
    if (type === STRING_TYPE) {
      this.#string();
    } else if (type === ARRAY_TYPE) {
      const itemType = this.#u32();
      const count = this.#size();
      for (let index = 0; index < count; index++) this.#skip(itemType);
    } else {
      this.#at += VALUE_SIZES[type]!;
    }
  }
}
