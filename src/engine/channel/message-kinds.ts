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
