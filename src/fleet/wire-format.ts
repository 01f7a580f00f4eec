import { randomUUID } from "node:crypto";
import type { z } from "zod";
import { beyondBounds } from "../json/json-bounds.ts";
import { MAX_JSON_DEPTH } from "../json/json-reader.ts";

/** What a frame is: the first are for the machine that is asked, the others for the one that asks. */
const KINDS = ["offer", "body", "alive", "cancel", "accepted", "part", "last"] as const;
export type FrameKind = (typeof KINDS)[number];

const ID_BYTES = 16;
/** Kind, call and number. */
const HEAD_BYTES = 1 + ID_BYTES + 4;
/** Larger messages are sent in parts, so that a short one need not wait long. */
const MAX_FRAME_BYTES = 128 * 1024;

/** One message on NATS: a piece of a call. */
export interface Frame {
  readonly kind: FrameKind;
  /** Of the call; 32 hexadecimal digits. */
  readonly call: string;
  /** Counts the frames of a call in this direction that may not be lost; of others, the last one. */
  readonly number: number;
  readonly payload: Uint8Array;
}

export function newCallId(): string {
  // Node keeps random bytes for these; asking for others takes twenty times as long.
  return randomUUID().replaceAll("-", "");
}

export function writeFrame({ kind, call, number, payload }: Frame): Uint8Array {
  const bytes = Buffer.allocUnsafe(HEAD_BYTES + payload.length);
  bytes[0] = KINDS.indexOf(kind);
  bytes.write(call, 1, "hex");
  bytes.writeUInt32BE(number, 1 + ID_BYTES);
  bytes.set(payload, HEAD_BYTES);
  return bytes;
}

/** Undefined for what is no frame. */
export function readFrame(data: Uint8Array): Frame | undefined {
  const kind = KINDS[data[0] ?? KINDS.length];
  if (kind === undefined || data.length < HEAD_BYTES) return undefined;
  const bytes = Buffer.from(data.buffer, data.byteOffset, data.byteLength);
  return {
    kind,
    call: bytes.toString("hex", 1, 1 + ID_BYTES),
    number: bytes.readUInt32BE(1 + ID_BYTES),
    payload: data.subarray(HEAD_BYTES),
  };
}

/** Pieces of bytes that fit into frames; at least one, which may be empty. */
export function* inParts(bytes: Uint8Array, maxPayload: number): Generator<Uint8Array, void> {
  const size = Math.min(MAX_FRAME_BYTES, maxPayload) - HEAD_BYTES;
  let at = 0;
  do {
    yield bytes.subarray(at, at + size);
    at += size;
  } while (at < bytes.length);
}

/** How many bytes of an answer have been read, for the one who sends it. */
export function writeCount(count: number): Uint8Array {
  const bytes = new Uint8Array(8);
  new DataView(bytes.buffer).setFloat64(0, count);
  return bytes;
}

/** 0 for what is no such count. */
export function readCount(payload: Uint8Array): number {
  if (payload.length !== 8) return 0;
  const count = new DataView(payload.buffer, payload.byteOffset, 8).getFloat64(0);
  return Number.isFinite(count) ? count : 0;
}

/**
 * Values as bytes: JSON, followed by the binary parts, which JSON would make a third larger. Numbers that JSON lacks are
 * kept too. A member `$` marks what stands for something else, also an object that has such a member itself.
 */

/** A mark doubles the depth of what has a member like it, and messages have a few levels of their own. */
const MAX_DEPTH = 2 * MAX_JSON_DEPTH + 16;
const ENCODER = new TextEncoder();
const DECODER = new TextDecoder("utf-8", { fatal: true });
/** In the text of each value that has marks, as {@link encodeValue} writes them; in forged text, what is written otherwise is none. */
const MARK = '"$"';
/** In front: how many bytes of JSON follow. */
const ENCODE_VALUE_HEAD_BYTES = 4;

type Binary = Uint8Array | Int32Array;

/** The bytes of a value. Functions and members that are undefined are left out. */
export function encodeValue(value: unknown): Uint8Array<ArrayBuffer> {
  const parts: Uint8Array[] = [];
  let at = 0;
  const lower = (each: unknown): unknown => {
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
    if (Array.isArray(each)) return each.map(lower);
    const members = Object.fromEntries(Object.entries(each).map(([key, member]) => [key, lower(member)]));
    return Object.hasOwn(each, "$") ? { $: "object", value: members } : members;
  };
  const json = ENCODER.encode(JSON.stringify(isPlain(value) ? value : lower(value)));
  const bytes = new Uint8Array(ENCODE_VALUE_HEAD_BYTES + json.length + at);
  new DataView(bytes.buffer).setUint32(0, json.length);
  bytes.set(json, ENCODE_VALUE_HEAD_BYTES);
  let next = ENCODE_VALUE_HEAD_BYTES + json.length;
  for (const part of parts) {
    bytes.set(part, next);
    next += part.length;
  }
  return bytes;
}

/**
 * The value of bytes, which may have been written by anyone.
 * @param mostValues in the JSON, nested ones included: each takes memory and time, however short it is
 * @throws when they are not those of a value
 */
export function decodeValue(bytes: Uint8Array, mostValues: number): unknown {
  const jsonLength = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength).getUint32(0);
  const parts = bytes.subarray(ENCODE_VALUE_HEAD_BYTES + jsonLength);
  const json = bytes.subarray(ENCODE_VALUE_HEAD_BYTES, ENCODE_VALUE_HEAD_BYTES + jsonLength);
  const raise = (each: unknown): unknown => {
    if (typeof each !== "object" || each === null) return each;
    if (Array.isArray(each)) return each.map(raise);
    const mark: unknown = Object.hasOwn(each, "$") ? Reflect.get(each, "$") : undefined;
    if (mark === undefined) return raiseMembers(each, raise);
    const value: unknown = Reflect.get(each, "value");
    if (mark === "number") return Number(value);
    if (mark === "object" && typeof value === "object" && value !== null) return raiseMembers(value, raise);
    return partOf(parts, mark, Reflect.get(each, "at"), Reflect.get(each, "length"));
  };
  const text = DECODER.decode(json);
  const beyond = beyondBounds(text, { depth: MAX_DEPTH, values: mostValues });
  if (beyond !== undefined) throw new RangeError(`beyond the limit of ${beyond}`);
  const value: unknown = JSON.parse(text);
  return text.includes(MARK) ? raise(value) : value;
}

/** Whether JSON has all of a value as it is: most messages are such, and go and come without a copy. */
function isPlain(value: unknown): boolean {
  if (typeof value === "number") return Number.isFinite(value);
  if (typeof value !== "object" || value === null) return true;
  if (Array.isArray(value)) return value.every(isPlain);
  if (value instanceof Uint8Array || value instanceof Int32Array || Object.hasOwn(value, "$")) return false;
  return Object.values(value).every(isPlain);
}

function raiseMembers(value: object, raise: (each: unknown) => unknown): unknown {
  return Object.fromEntries(Object.entries(value).map(([key, member]) => [key, raise(member)]));
}

/** A copy, which is aligned. */
function partOf(parts: Uint8Array, mark: unknown, at: unknown, length: unknown): Binary {
  if (!isIndex(at) || !isIndex(length) || at + length > parts.length) throw new RangeError("no such part");
  // Not slice(), which of a Buffer is no copy.
  const bytes = new Uint8Array(parts.subarray(at, at + length));
  if (mark === "bytes") return bytes;
  if (mark === "ints" && length % 4 === 0) return new Int32Array(bytes.buffer);
  throw new RangeError("no such kind of part");
}

function isIndex(value: unknown): value is number {
  return Number.isSafeInteger(value) && Number(value) >= 0;
}

/** A message as JSON. */
export function writeJson(value: unknown): Uint8Array {
  return ENCODER.encode(JSON.stringify(value));
}

/** Undefined for what is not a message of this kind: anyone on the NATS server may send anything. */
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
