/**
 * Values as bytes: JSON, followed by the binary parts, which JSON would make a third larger. Numbers that JSON lacks are
 * kept too. A member `$` marks what stands for something else, also an object that has such a member itself.
 */

import { beyondBounds } from "../json/json-bounds.ts";
import { MAX_JSON_DEPTH } from "../json/json-depth.ts";

/** A mark doubles the depth of what has a member like it, and messages have a few levels of their own. */
const MOST_DEPTH = 2 * MAX_JSON_DEPTH + 16;
const ENCODER = new TextEncoder();
const DECODER = new TextDecoder("utf-8", { fatal: true });
/** In the text of each value that has marks, as {@link encodeValue} writes them; in forged text, what is written otherwise is none. */
const MARK = '"$"';
/** In front: how many bytes of JSON follow. */
const HEAD_BYTES = 4;

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
  const bytes = new Uint8Array(HEAD_BYTES + json.length + at);
  new DataView(bytes.buffer).setUint32(0, json.length);
  bytes.set(json, HEAD_BYTES);
  let next = HEAD_BYTES + json.length;
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
  const parts = bytes.subarray(HEAD_BYTES + jsonLength);
  const json = bytes.subarray(HEAD_BYTES, HEAD_BYTES + jsonLength);
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
  const beyond = beyondBounds(text, { depth: MOST_DEPTH, values: mostValues });
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
