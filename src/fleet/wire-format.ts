import { randomUUID } from "node:crypto";
import type { z } from "zod";
import { exceededBound } from "../json/json-bounds.ts";
import { MAX_JSON_DEPTH } from "../json/json-reader.ts";

/** Kinds of frames: the first four go to the called machine, the others to the caller. */
const KINDS = ["offer", "body", "alive", "cancel", "accepted", "part", "last"] as const;
export type FrameKind = (typeof KINDS)[number];

const ID_BYTES = 16;
/** Bytes of kind, call id and number. */
const FRAME_HEADER_BYTES = 1 + ID_BYTES + 4;
/** Larger messages are split, so that short ones need not wait long. */
const MAX_FRAME_BYTES = 128 * 1024;

/** Message of a call on NATS. */
export interface Frame {
  readonly kind: FrameKind;
  /** Call id of 32 hexadecimal digits. */
  readonly call: string;
  /** Sequence number of frames that must not be lost; other frames carry that of the last such frame. */
  readonly number: number;
  readonly payload: Uint8Array;
}

export function newCallId(): string {
  // Node caches random bytes for UUIDs; requesting other random bytes takes twenty times as long.
  return randomUUID().replaceAll("-", "");
}

export function writeFrame({ kind, call, number, payload }: Frame): Uint8Array {
  const bytes = Buffer.allocUnsafe(FRAME_HEADER_BYTES + payload.length);
  bytes[0] = KINDS.indexOf(kind);
  bytes.write(call, 1, "hex");
  bytes.writeUInt32BE(number, 1 + ID_BYTES);
  bytes.set(payload, FRAME_HEADER_BYTES);
  return bytes;
}

/** Decodes a frame; undefined for invalid data. */
export function readFrame(data: Uint8Array): Frame | undefined {
  const kind = KINDS[data[0] ?? KINDS.length];
  if (kind === undefined || data.length < FRAME_HEADER_BYTES) return undefined;
  const bytes = Buffer.from(data.buffer, data.byteOffset, data.byteLength);
  return {
    kind,
    call: bytes.toString("hex", 1, 1 + ID_BYTES),
    number: bytes.readUInt32BE(1 + ID_BYTES),
    payload: data.subarray(FRAME_HEADER_BYTES),
  };
}

/** Splits bytes to fit into frames. */
export function splitIntoFrames(bytes: Uint8Array, maxPayload: number): Uint8Array[] {
  return splitBytes(bytes, Math.min(MAX_FRAME_BYTES, maxPayload) - FRAME_HEADER_BYTES);
}

/** Splits bytes into parts of a size; returns at least one part, which may be empty. */
export function splitBytes(bytes: Uint8Array, size: number): Uint8Array[] {
  const count = Math.max(1, Math.ceil(bytes.length / size));
  return Array.from({ length: count }, (_, at) => bytes.subarray(at * size, (at + 1) * size));
}

/** Encodes the number of read bytes for the sender of an answer. */
export function writeCount(count: number): Uint8Array {
  const bytes = Buffer.alloc(8);
  bytes.writeDoubleBE(count);
  return bytes;
}

/** Decodes a number of read bytes; 0 for invalid data. */
export function readCount(payload: Uint8Array): number {
  if (payload.length !== 8) return 0;
  const count = new DataView(payload.buffer, payload.byteOffset, 8).getFloat64(0);
  return Number.isFinite(count) ? count : 0;
}

/**
 * Values are encoded as JSON followed by binary parts, since base64 would be a third larger. Numbers that JSON lacks
 * are preserved. An object with a member `$` stands for such a value, or for an object that has such a member itself.
 */

/** A marker doubles the depth of objects that have such a member, and messages add some levels. */
const MAX_DEPTH = 2 * MAX_JSON_DEPTH + 16;
const ENCODER = new TextEncoder();
const DECODER = new TextDecoder("utf-8", { fatal: true });
/** Text of the marker in the JSON of {@link encodeValue}. Forged JSON with escapes is not recognized as a marker. */
const MARKER = '"$"';
/** Bytes in front of the JSON: its length. */
const VALUE_HEADER_BYTES = 4;

type Binary = Uint8Array | Int32Array;

/** Encodes a value; omits functions and undefined members. */
export function encodeValue(value: unknown): Uint8Array<ArrayBuffer> {
  const parts: Uint8Array[] = [];
  let at = 0;
  const encode = (each: unknown): unknown => {
    if (typeof each === "number") return Number.isFinite(each) ? each : { $: "number", value: String(each) };
    if (typeof each !== "object" || each === null) return each;
    if (each instanceof Uint8Array || each instanceof Int32Array) {
      const bytes = new Uint8Array(each.buffer, each.byteOffset, each.byteLength);
      parts.push(bytes);
      at += bytes.length;
      return {
        $: each instanceof Int32Array ? "ints" : "bytes",
        at: at - bytes.length,
        length: bytes.length,
      };
    }
    if (Array.isArray(each)) return each.map(encode);
    const members = Object.fromEntries(Object.entries(each).map(([key, member]) => [key, encode(member)]));
    return Object.hasOwn(each, "$") ? { $: "object", value: members } : members;
  };
  const json = writeJson(isPlainJson(value) ? value : encode(value));
  return withLength(json, ...parts);
}

/** Puts the length of the first part in front of the parts. */
export function withLength(first: Uint8Array, ...others: readonly Uint8Array[]): Buffer<ArrayBuffer> {
  const header = Buffer.alloc(VALUE_HEADER_BYTES);
  header.writeUInt32BE(first.length);
  return Buffer.concat([header, first, ...others]);
}

/**
 * Decodes a value from untrusted bytes.
 * @param maxValues maximum values in the JSON, nested ones included, since each takes memory and time
 * @throws if the bytes are not an encoded value
 */
export function decodeValue(bytes: Uint8Array, maxValues: number): unknown {
  const jsonLength = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength).getUint32(0);
  const parts = bytes.subarray(VALUE_HEADER_BYTES + jsonLength);
  const json = bytes.subarray(VALUE_HEADER_BYTES, VALUE_HEADER_BYTES + jsonLength);
  const decode = (each: unknown): unknown => {
    if (typeof each !== "object" || each === null) return each;
    if (Array.isArray(each)) return each.map(decode);
    const marker: unknown = Object.hasOwn(each, "$") ? Reflect.get(each, "$") : undefined;
    if (marker === undefined) return decodeMembers(each, decode);
    const value: unknown = Reflect.get(each, "value");
    if (marker === "number") return Number(value);
    if (marker === "object" && typeof value === "object" && value !== null)
      return decodeMembers(value, decode);
    return binaryPart(parts, marker, Reflect.get(each, "at"), Reflect.get(each, "length"));
  };
  const text = DECODER.decode(json);
  const beyond = exceededBound(text, { depth: MAX_DEPTH, values: maxValues });
  if (beyond !== undefined) throw new RangeError(`beyond the limit of ${beyond}`);
  const value: unknown = JSON.parse(text);
  return text.includes(MARKER) ? decode(value) : value;
}

/** Returns true if JSON preserves the value, as for most messages, which then need no copy. */
function isPlainJson(value: unknown): boolean {
  if (typeof value === "number") return Number.isFinite(value);
  if (typeof value !== "object" || value === null) return true;
  if (Array.isArray(value)) return value.every(isPlainJson);
  if (value instanceof Uint8Array || value instanceof Int32Array || Object.hasOwn(value, "$")) return false;
  return Object.values(value).every(isPlainJson);
}

function decodeMembers(value: object, decode: (each: unknown) => unknown): unknown {
  return Object.fromEntries(Object.entries(value).map(([key, member]) => [key, decode(member)]));
}

/** Returns an aligned copy of a binary part. */
function binaryPart(parts: Uint8Array, marker: unknown, at: unknown, length: unknown): Binary {
  if (!isIndex(at) || !isIndex(length) || at + length > parts.length) throw new RangeError("no such part");
  // Buffer.slice() does not copy.
  const bytes = new Uint8Array(parts.subarray(at, at + length));
  if (marker === "bytes") return bytes;
  if (marker === "ints" && length % 4 === 0) return new Int32Array(bytes.buffer);
  throw new RangeError("no such kind of part");
}

function isIndex(value: unknown): value is number {
  return Number.isSafeInteger(value) && Number(value) >= 0;
}

/** Encodes a message as JSON. */
export function writeJson(value: unknown): Uint8Array {
  return ENCODER.encode(JSON.stringify(value));
}

/** Decodes a JSON message; undefined if it does not match the schema, since NATS clients may send anything. */
export function readJson<Schema extends z.ZodType>(
  schema: Schema,
  data: Uint8Array,
): z.output<Schema> | undefined {
  try {
    return schema.safeParse(JSON.parse(DECODER.decode(data))).data;
  } catch {
    return undefined;
  }
}
