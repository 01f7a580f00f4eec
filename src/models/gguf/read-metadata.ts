import { type ByteReader, claimed, decodeText, InvalidGguf, quoted } from "./byte-reader.ts";

/** An array: its length, and its numbers if they may be one value per layer. */
interface MetadataArray {
  readonly length: number;
  /** GGUF type number of its elements; absent: this stands for a string that is too long to store. */
  readonly type?: number;
  readonly numbers: readonly number[] | undefined;
  /** Special tokens of a vocabulary, such as "<|im_start|>" or "[SUFFIX]", by id. */
  readonly markers?: ReadonlyMap<number, string>;
}

export type MetadataValue = number | boolean | string | MetadataArray;
export type Metadata = ReadonlyMap<string, MetadataValue>;

/** Maximum keys; published models have some dozens. */
const MAX_KEYS = 10_000;
/** Maximum bytes of a key, by the format. */
const MAX_KEY_LENGTH = 65_535;
/** Maximum bytes of a string that is stored; the longest that matters, the chat template, has below 100 KB. */
const MAX_STORED_STRING = 1024 * 1024;
/** Maximum length of an array that is stored, as one number per layer; no model has more layers. */
const MAX_STORED_NUMBERS = 4096;
/** Maximum bytes of a special token; the longest in use have some 30. */
const MAX_MARKER_BYTES = 64;
/** Maximum special tokens; vocabularies have up to a thousand. */
const MAX_MARKERS = 10_000;
/** Form of a special token, optionally with SentencePiece's space. */
const MARKER = /^▁?[<[]/;
const VOCABULARY = "tokenizer.ggml.tokens";
/** Minimum bytes of an entry: key length, type and a value of one byte. */
const MIN_KEY_BYTES = 13;

export const STRING = 8;
const ARRAY = 9;
const BOOL = 7;
/** Bytes of value types by number, and how they are read; strings and arrays have no fixed size. */
const VALUE_TYPES: ReadonlyMap<number, { size: number; read: (view: DataView, at: number) => number }> =
  new Map([
    [0, { size: 1, read: (view, at) => view.getUint8(at) }],
    [1, { size: 1, read: (view, at) => view.getInt8(at) }],
    [2, { size: 2, read: (view, at) => view.getUint16(at, true) }],
    [3, { size: 2, read: (view, at) => view.getInt16(at, true) }],
    [4, { size: 4, read: (view, at) => view.getUint32(at, true) }],
    [5, { size: 4, read: (view, at) => view.getInt32(at, true) }],
    [6, { size: 4, read: (view, at) => view.getFloat32(at, true) }],
    [BOOL, { size: 1, read: (view, at) => view.getUint8(at) }],
    // Inexact above 2^53, which no relevant value reaches.
    [10, { size: 8, read: (view, at) => Number(view.getBigUint64(at, true)) }],
    [11, { size: 8, read: (view, at) => Number(view.getBigInt64(at, true)) }],
    [12, { size: 8, read: (view, at) => view.getFloat64(at, true) }],
  ]);

/** Called with the file positions of a key and its value. */
export type OnEntry = (key: string, start: number, end: number) => void;

/** Reads the key-value part of a header. Long arrays such as vocabularies are counted, but not stored. */
export async function readMetadata(
  reader: ByteReader,
  count: number,
  onEntry: OnEntry | undefined,
): Promise<Metadata> {
  if (count > MAX_KEYS || count * MIN_KEY_BYTES > reader.remaining) {
    throw new InvalidGguf(`it is damaged: it claims to have ${claimed(count)} keys`);
  }
  const metadata = new Map<string, MetadataValue>();
  for (let index = 0; index < count; index++) {
    const start = reader.position;
    const key = await readName(reader, MAX_KEY_LENGTH);
    if (metadata.has(key)) throw new InvalidGguf(`it has the key ${quoted(key)} twice`);
    await reader.ensure(4);
    metadata.set(key, await readValue(reader, reader.u32(), key));
    onEntry?.(key, start, reader.position);
  }
  return metadata;
}

/** Reads a string of at most `max` bytes: a key or the name of a tensor. */
export async function readName(reader: ByteReader, max: number): Promise<string> {
  await reader.ensure(8);
  const length = reader.u64();
  if (length > max) throw new InvalidGguf(`it is damaged: it has a name of ${claimed(length)} bytes`);
  await reader.ensure(length);
  return decodeText(reader.bytes(length));
}

async function readValue(reader: ByteReader, type: number, key: string): Promise<MetadataValue> {
  if (type === STRING) return await readString(reader);
  if (type === ARRAY) return await readArray(reader, key);
  const valueType = VALUE_TYPES.get(type);
  if (!valueType) throw new InvalidGguf(`the key ${quoted(key)} has the unknown type ${type}`);
  await reader.ensure(valueType.size);
  const value = valueType.read(viewOf(reader.bytes(valueType.size)), 0);
  return type === BOOL ? value !== 0 : value;
}

async function readString(reader: ByteReader): Promise<MetadataValue> {
  await reader.ensure(8);
  const length = reader.u64();
  if (length <= MAX_STORED_STRING) return decodeText(await reader.read(length));
  reader.skip(length);
  return { length, numbers: undefined };
}

async function readArray(reader: ByteReader, key: string): Promise<MetadataArray> {
  await reader.ensure(12);
  const type = reader.u32();
  const length = reader.u64();
  if (type === STRING) {
    const text = { length, numbers: undefined, type };
    if (key === VOCABULARY) return { ...text, markers: await readMarkers(reader, length) };
    await skipStrings(reader, length);
    return text;
  }
  const valueType = VALUE_TYPES.get(type);
  if (!valueType) {
    throw new InvalidGguf(`the array ${quoted(key)} has elements of the unsupported type ${type}`);
  }
  const { size, read } = valueType;
  if (length > MAX_STORED_NUMBERS) {
    reader.skip(length * size);
    return { length, numbers: undefined, type };
  }
  const view = viewOf(await reader.read(length * size));
  return { length, numbers: Array.from({ length }, (_, index) => read(view, index * size)), type };
}

async function skipStrings(reader: ByteReader, count: number): Promise<void> {
  for (let index = 0; index < count; index++) {
    // Awaits only at the end of the buffer, because a vocabulary has hundreds of thousands of strings.
    if (!reader.has(8)) await reader.ensure(8);
    reader.skip(reader.u64());
  }
}

async function readMarkers(reader: ByteReader, count: number): Promise<Map<number, string>> {
  const markers = new Map<number, string>();
  for (let index = 0; index < count; index++) {
    if (!reader.has(8)) await reader.ensure(8);
    const length = reader.u64();
    if (length > MAX_MARKER_BYTES || markers.size === MAX_MARKERS) {
      reader.skip(length);
      continue;
    }
    if (!reader.has(length)) await reader.ensure(length);
    const text = decodeText(reader.bytes(length));
    if (MARKER.test(text)) markers.set(index, text);
  }
  return markers;
}

function viewOf({ buffer, byteOffset, byteLength }: Uint8Array): DataView {
  return new DataView(buffer, byteOffset, byteLength);
}
