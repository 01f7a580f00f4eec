import fs from "node:fs";
import { COPY_FORMATS } from "./make-quantized-blocks.ts";
import { randomNumbers } from "./random-numbers.ts";

/**
 * Writes GGUF files (version 3) for tests; the format is described in ggml's repository, docs/gguf.md.
 * Weights are random but the same for the same seed.
 */

/** Scalar types and their numbers in the format. */
const SCALAR_TYPES = {
  u8: 0,
  i8: 1,
  u16: 2,
  i16: 3,
  u32: 4,
  i32: 5,
  f32: 6,
  bool: 7,
  string: 8,
  u64: 10,
  i64: 11,
  f64: 12,
} as const;

const ARRAY_TYPE = 9;

type GgufScalarType = keyof typeof SCALAR_TYPES;
type GgufScalar = number | bigint | string | boolean;

export type GgufValue =
  | { readonly type: GgufScalarType; readonly value: GgufScalar }
  | { readonly type: "array"; readonly of: GgufScalarType; readonly value: readonly GgufScalar[] };

export const u32 = (value: number): GgufValue => ({ type: "u32", value });
export const u16 = (value: number): GgufValue => ({ type: "u16", value });
export const i32 = (value: number): GgufValue => ({ type: "i32", value });
export const u64 = (value: number | bigint): GgufValue => ({ type: "u64", value });
export const f32 = (value: number): GgufValue => ({ type: "f32", value });
export const bool = (value: boolean): GgufValue => ({ type: "bool", value });
export const string = (value: string): GgufValue => ({ type: "string", value });
export const array = (of: GgufScalarType, value: readonly GgufScalar[]): GgufValue => ({
  type: "array",
  of,
  value,
});

/** Tensor types: number in the format, elements and bytes of a block. */
const TENSOR_TYPES = {
  F32: { id: 0, elements: 1, bytes: 4 },
  F16: { id: 1, elements: 1, bytes: 2 },
  Q4_0: { id: 2, elements: 32, bytes: 18 },
  Q8_0: { id: 8, elements: 32, bytes: 34 },
  Q4_K: { id: 12, elements: 256, bytes: 144 },
  Q5_K: { id: 13, elements: 256, bytes: 176 },
  Q6_K: { id: 14, elements: 256, bytes: 210 },
  IQ4_XS: { id: 23, elements: 256, bytes: 136 },
  MXFP4: { id: 39, elements: 32, bytes: 17 },
} as const;

export type TensorType = keyof typeof TENSOR_TYPES;

export interface GgufTensor {
  readonly name: string;
  /** Fastest dimension first, as in the file: a PyTorch weight [out, in] is [in, out] here. */
  readonly shape: readonly number[];
  readonly type: TensorType;
  /** Standard deviation of random weights, or one value for all, or each of them (F32 only), or the bytes of each row. */
  readonly data:
    | { readonly random: number }
    | { readonly fill: number }
    | { readonly values: Float32Array }
    | { readonly rows: (row: number) => Uint8Array };
}

export interface GgufFile {
  readonly metadata: Readonly<Record<string, GgufValue>>;
  readonly tensors: readonly GgufTensor[];
}

/** Where the data of each tensor begins: a multiple of this. */
const ALIGNMENT = 32;

/** Random blocks are made once and repeated: big files should be written quickly. */
const PATTERN_ELEMENTS = 64 * 1024;

/** Bytes of a tensor's data. */
export function tensorBytes({ shape, type }: Pick<GgufTensor, "shape" | "type">): number {
  const { elements, bytes } = TENSOR_TYPES[type];
  return (shape.reduce((product, size) => product * size, 1) / elements) * bytes;
}

/** The head of the file, up to the aligned beginning of the data. */
export function ggufHeader({ metadata, tensors }: GgufFile): Buffer {
  const parts: Buffer[] = [Buffer.from("GGUF"), number("u32", 3)];
  const entries = Object.entries(metadata);
  parts.push(number("u64", tensors.length), number("u64", entries.length));
  for (const [key, value] of entries) {
    parts.push(text(key));
    if (value.type === "array") {
      parts.push(number("u32", ARRAY_TYPE), number("u32", SCALAR_TYPES[value.of]));
      parts.push(number("u64", value.value.length));
      // One by one: a vocabulary has more tokens than a call may have arguments.
      for (const item of value.value) parts.push(scalar(value.of, item));
    } else {
      parts.push(number("u32", SCALAR_TYPES[value.type]), scalar(value.type, value.value));
    }
  }
  let offset = 0;
  for (const tensor of tensors) {
    parts.push(text(tensor.name), number("u32", tensor.shape.length));
    parts.push(...tensor.shape.map((size) => number("u64", size)));
    parts.push(number("u32", TENSOR_TYPES[tensor.type].id), number("u64", offset));
    offset = aligned(offset + tensorBytes(tensor));
  }
  const head = Buffer.concat(parts);
  return Buffer.concat([head, Buffer.alloc(aligned(head.length) - head.length)]);
}

/** Writes a whole file and returns its size in bytes. */
export function writeGguf(path: string, file: GgufFile, seed = 1): number {
  const fd = fs.openSync(path, "w");
  try {
    let size = writeAll(fd, ggufHeader(file));
    for (const tensor of file.tensors) {
      const bytes = tensorBytes(tensor);
      for (const part of tensorData(tensor, seed)) size += writeAll(fd, part);
      size += writeAll(fd, Buffer.alloc(aligned(bytes) - bytes));
    }
    return size;
  } finally {
    fs.closeSync(fd);
  }
}

/** Copies a file, cut off after some bytes. */
export function writeTruncated(from: string, to: string, bytes: number): void {
  fs.copyFileSync(from, to);
  fs.truncateSync(to, bytes);
}

/** Copies a file with some bits flipped, at random places from `start` up to `end`. */
export function writeWithFlippedBits(
  from: string,
  to: string,
  options: { readonly seed: number; readonly flips: number; readonly start?: number; readonly end?: number },
): void {
  const bytes = fs.readFileSync(from);
  const random = randomNumbers(options.seed);
  const { start = 0, end = bytes.length } = options;
  for (let flip = 0; flip < options.flips; flip += 1) {
    const at = start + Math.floor(random() * (end - start));
    bytes[at]! ^= 1 << Math.floor(random() * 8);
  }
  fs.writeFileSync(to, bytes);
}

function aligned(offset: number): number {
  return Math.ceil(offset / ALIGNMENT) * ALIGNMENT;
}

function writeAll(fd: number, bytes: Uint8Array): number {
  for (let done = 0; done < bytes.length;) done += fs.writeSync(fd, bytes, done);
  return bytes.length;
}

function text(value: string): Buffer {
  const bytes = Buffer.from(value, "utf8");
  return Buffer.concat([number("u64", bytes.length), bytes]);
}

function scalar(type: GgufScalarType, value: GgufScalar): Buffer {
  return type === "string" ? text(String(value)) : number(type, typeof value === "string" ? NaN : value);
}

function number(type: Exclude<GgufScalarType, "string">, value: number | bigint | boolean): Buffer {
  const bytes = Buffer.alloc(8);
  return bytes.subarray(0, NUMBER_WRITERS[type](bytes, value));
}

type WriteNumber = (to: Buffer, value: number | bigint | boolean) => number;

/** Each returns how many bytes it has written. */
const NUMBER_WRITERS: Record<Exclude<GgufScalarType, "string">, WriteNumber> = {
  u8: (to, value) => to.writeUInt8(Number(value)),
  i8: (to, value) => to.writeInt8(Number(value)),
  u16: (to, value) => to.writeUInt16LE(Number(value)),
  i16: (to, value) => to.writeInt16LE(Number(value)),
  u32: (to, value) => to.writeUInt32LE(Number(value)),
  i32: (to, value) => to.writeInt32LE(Number(value)),
  f32: (to, value) => to.writeFloatLE(Number(value)),
  bool: (to, value) => to.writeUInt8(Number(value)),
  u64: (to, value) => to.writeBigUInt64LE(BigInt(value)),
  i64: (to, value) => to.writeBigInt64LE(BigInt(value)),
  f64: (to, value) => to.writeDoubleLE(Number(value)),
};

/** The data of a tensor, in parts. */
function* tensorData(tensor: GgufTensor, seed: number): Generator<Uint8Array> {
  if ("rows" in tensor.data) {
    const rows = tensor.shape.slice(1).reduce((product, size) => product * size, 1);
    for (let row = 0; row < rows; row++) yield tensor.data.rows(row);
    return;
  }
  // By its name, so that a tensor has the same weights in whichever shard it lies.
  const pattern = tensorPattern(tensor.data, tensor, randomNumbers(seed + hash(tensor.name)));
  for (let rest = tensorBytes(tensor); rest > 0; rest -= pattern.length) {
    yield rest < pattern.length ? pattern.subarray(0, rest) : pattern;
  }
}

/** Blocks of random weights, one behind the other. */
export function randomBlocks(
  tensor: Pick<GgufTensor, "shape" | "type">,
  deviation: number,
  seed: number,
): Uint8Array {
  return tensorPattern({ random: deviation }, tensor, randomNumbers(seed));
}

/** Data that is repeated over a tensor; a whole number of blocks, and no more of them than the tensor has. */
function tensorPattern(
  data: Exclude<GgufTensor["data"], { readonly rows: unknown }>,
  tensor: Pick<GgufTensor, "shape" | "type">,
  random: () => number,
): Buffer {
  if ("values" in data)
    return Buffer.from(data.values.buffer, data.values.byteOffset, data.values.byteLength);
  const { elements, bytes } = TENSOR_TYPES[tensor.type];
  const blocks = Math.min(tensorBytes(tensor) / bytes, PATTERN_ELEMENTS / elements);
  const pattern = Buffer.alloc(blocks * bytes);
  for (let block = 0; block < blocks; block += 1)
    writeBlock(pattern, block * bytes, tensor.type, data, random);
  return pattern;
}

/** Steps between zero and the largest value of a quantized weight. */
const Q8_STEPS = 127;
const Q4_STEPS = 8;

function writeBlock(
  to: Buffer,
  at: number,
  type: TensorType,
  data: { readonly random: number } | { readonly fill: number },
  random: () => number,
): void {
  const isFilled = "fill" in data;
  const value = (): number => (isFilled ? data.fill : gaussian(random) * data.random);
  // Uniform quantized weights have the same deviation when they reach to sqrt(3) times it.
  const scale = isFilled ? Math.abs(data.fill) : data.random * Math.sqrt(3);
  switch (type) {
    case "F32":
      to.writeFloatLE(value(), at);
      return;
    case "F16":
      to.writeUInt16LE(toHalf(value()), at);
      return;
    case "Q8_0":
      to.writeUInt16LE(toHalf(scale / Q8_STEPS), at);
      for (let index = 0; index < 32; index += 1) {
        const steps = isFilled ? Q8_STEPS * Math.sign(data.fill) : (random() * 2 - 1) * Q8_STEPS;
        to.writeInt8(Math.round(steps), at + 2 + index);
      }
      return;
    case "Q4_0":
      to.writeUInt16LE(toHalf(scale / Q4_STEPS), at);
      for (let index = 0; index < 16; index += 1) {
        const nibble = isFilled ? (data.fill === 0 ? 8 : 15) : -1;
        to[at + 2 + index] = nibble < 0 ? Math.floor(random() * 256) : nibble | (nibble << 4);
      }
      return;
    case "Q4_K":
    case "Q5_K":
    case "Q6_K":
    case "IQ4_XS":
    case "MXFP4": {
      const weights = Float32Array.from({ length: TENSOR_TYPES[type].elements }, value);
      COPY_FORMATS[type].quantize(weights, new DataView(to.buffer, to.byteOffset, to.length), at);
      return;
    }
  }
}

/** Half-precision bits of a number of moderate size; what is too small becomes zero. */
function toHalf(value: number): number {
  const bits = Buffer.alloc(4);
  bits.writeFloatLE(value);
  const single = bits.readUInt32LE();
  const sign = (single >>> 16) & 0x8000;
  const exponent = ((single >>> 23) & 0xff) - 127 + 15;
  if (exponent <= 0) return sign;
  return sign | (Math.min(exponent, 30) << 10) | ((single >>> 13) & 0x3ff);
}

/** FNV-1a. */
function hash(name: string): number {
  let value = 0x811c9dc5;
  for (const byte of Buffer.from(name)) value = Math.imul(value ^ byte, 0x01000193);
  return value >>> 0;
}

function gaussian(random: () => number): number {
  return Math.sqrt(-2 * Math.log(1 - random())) * Math.cos(2 * Math.PI * random());
}
