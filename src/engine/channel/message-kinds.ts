import type { FrameLimits } from "./frame.ts";
import type { JsonBounds } from "../../json/json-bounds.ts";

/** Limits of one kind of message. */
export interface KindLimits extends FrameLimits, JsonBounds {}

/** Conversion of a message that carries bytes in addition to its JSON. */
interface Attaching<Message> {
  /** Takes the bytes out of a message; the rest can be written as JSON. */
  detach(message: Message): { readonly rest: object; readonly attachments: Uint8Array[] };
  /** Puts them back into a message that is not validated yet. @throws TypeError when they do not fit */
  attach(rest: object, attachments: readonly Uint8Array[]): object;
}

export interface MessageKind<Message = object> {
  readonly limits: KindLimits;
  readonly attaching?: Attaching<Message>;
}

/** All kinds of messages of one direction by `type`. The number of a kind is its position in this list. */
export type MessageKinds<Message extends { readonly type: string }> = {
  readonly [Type in Message["type"]]: MessageKind<Extract<Message, { type: Type }>>;
};

export const KIB = 1024;
export const MIB = 1024 * KIB;

/** For a message of a few numbers and words. */
export const SHORT: MessageKind = {
  limits: { json: 4 * KIB, depth: 4, values: 64, attachments: 0, binary: 0 },
};

/** For a message with text for people; an escaped character takes up to six bytes. */
export const SENTENCE: MessageKind = {
  limits: { json: 64 * KIB, depth: 4, values: 16, attachments: 0, binary: 0 },
};

type NumberArray = Uint8Array | Int32Array | Float64Array;

interface ArrayType<Result extends NumberArray> {
  readonly BYTES_PER_ELEMENT: number;
  new (buffer: ArrayBuffer): Result;
}

export function toBytes(array: NumberArray): Uint8Array {
  return new Uint8Array(array.buffer, array.byteOffset, array.byteLength);
}

/**
 * Copies an attachment into a typed array: its bytes may not be aligned, and its buffer is reused.
 * @throws TypeError when the attachment is missing or ends in the middle of a number
 */
export function fromBytes<Result extends NumberArray>(
  type: ArrayType<Result>,
  bytes: Uint8Array | undefined,
): Result {
  if (!bytes) throw new TypeError("lacks an attachment");
  if (bytes.length % type.BYTES_PER_ELEMENT !== 0)
    throw new TypeError("has an attachment that ends in the middle of a number");
  const copy = new ArrayBuffer(bytes.length);
  new Uint8Array(copy).set(bytes);
  return new type(copy);
}

/** @throws TypeError when the property is not an object */
export function propertyOf(value: object, name: string): object {
  const property: unknown = Object.entries(value).find(([key]) => key === name)?.[1];
  if (typeof property !== "object" || property === null) throw new TypeError(`has no ${name}`);
  return property;
}
