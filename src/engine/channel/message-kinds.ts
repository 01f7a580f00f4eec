import { KIB } from "../../json/quantities.ts";
import type { FrameLimits } from "./frame.ts";
import type { JsonBounds } from "../../json/json-bounds.ts";

export interface KindLimits extends FrameLimits, JsonBounds {}

export interface MessageKind {
  readonly limits: KindLimits;
  /** Binary data within a message, by its path, which is sent as attachments. "*" stands for every item of a list. */
  readonly binary?: Readonly<Record<string, BinaryForm>>;
}

/** All kinds of messages of one direction by `type`. Frames identify a kind by its position in this list. */
export type MessageKinds<Message extends { readonly type: string }> = Readonly<
  Record<Message["type"], MessageKind>
>;

/** Kind of a message with a few numbers and words. */
export const SHORT_MESSAGE: MessageKind = {
  limits: { json: 4 * KIB, depth: 4, values: 64, attachments: 0, binary: 0 },
};

/** Kind of a message with a text of up to 4096 characters. An escaped character takes up to six bytes. */
export const TEXT_MESSAGE: MessageKind = {
  limits: { json: 64 * KIB, depth: 4, values: 16, attachments: 0, binary: 0 },
};

type BinaryForm = "bytes" | "int32" | "numbers";

/** Bytes of a value in a message; undefined for a value that the JSON holds. */
export function toBytes(value: unknown, form: BinaryForm): Uint8Array | undefined {
  if (typeof value !== "object" || value === null) return undefined;
  const array = form === "numbers" && Array.isArray(value) ? Float64Array.from(value) : value;
  return ArrayBuffer.isView(array)
    ? new Uint8Array(array.buffer, array.byteOffset, array.byteLength)
    : undefined;
}

/**
 * Copies an attachment into a value, because its bytes may not be aligned and its buffer is reused.
 * @throws TypeError if the attachment is missing or ends in the middle of a number
 */
export function fromBytes(bytes: Uint8Array | undefined, form: BinaryForm): unknown {
  if (!bytes) throw new TypeError("lacks an attachment");
  const { buffer } = new Uint8Array(bytes);
  if (form === "bytes") return new Uint8Array(buffer);
  const type = form === "int32" ? Int32Array : Float64Array;
  if (bytes.length % type.BYTES_PER_ELEMENT !== 0)
    throw new TypeError("has an attachment that ends in the middle of a number");
  return form === "int32" ? new type(buffer) : Array.from(new type(buffer));
}
