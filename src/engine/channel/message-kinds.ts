import { KIB } from "../../json/quantities.ts";
import type { FrameLimits } from "./frame.ts";
import type { JsonBounds } from "../../json/json-bounds.ts";

/** Limits of one kind of message. */
export interface KindLimits extends FrameLimits, JsonBounds {}

/** Moves the binary data of a message into attachments, and back. */
interface AttachmentCodec<Message> {
  /** Removes the binary data from a message. `rest` can be written as JSON. */
  detach(message: Message): { readonly rest: object; readonly attachments: Uint8Array[] };
  /** Inserts attachments into a message that is not validated yet. @throws TypeError if they do not match it */
  attach(rest: object, attachments: readonly Uint8Array[]): object;
}

export interface MessageKind<Message = object> {
  readonly limits: KindLimits;
  readonly attachmentCodec?: AttachmentCodec<Message>;
}

/** All kinds of messages of one direction by `type`. Frames identify a kind by its position in this list. */
export type MessageKinds<Message extends { readonly type: string }> = {
  readonly [Type in Message["type"]]: MessageKind<Extract<Message, { type: Type }>>;
};

/** Kind of a message with a few numbers and words. */
export const SHORT_MESSAGE: MessageKind = {
  limits: { json: 4 * KIB, depth: 4, values: 64, attachments: 0, binary: 0 },
};

/** Kind of a message with a text of up to 4096 characters. An escaped character takes up to six bytes. */
export const TEXT_MESSAGE: MessageKind = {
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
 * Copies an attachment into a typed array, because its bytes may not be aligned and its buffer is reused.
 * @throws TypeError if the attachment is missing or ends in the middle of a number
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

/** Returns a property of an object. @throws TypeError if the property is not an object */
export function propertyOf(value: object, name: string): object {
  const property: unknown = Object.entries(value).find(([key]) => key === name)?.[1];
  if (typeof property !== "object" || property === null) throw new TypeError(`has no ${name}`);
  return property;
}
