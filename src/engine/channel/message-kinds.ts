import type { FrameLimits } from "./frame.ts";
import type { JsonBounds } from "../../json/json-bounds.ts";

/** What one kind of message may be. */
export interface KindLimits extends FrameLimits, JsonBounds {}

/** A kind of message that carries bytes beside its JSON. */
interface Attaching<Message> {
  /** Takes the bytes out of a message; what is left can be written as JSON. */
  detach(message: Message): { readonly rest: object; readonly attachments: Uint8Array[] };
  /** Puts them back; what was read may be anything. @throws TypeError when it has no place for them */
  attach(rest: object, attachments: readonly Uint8Array[]): object;
}

export interface MessageKind<Message = object> {
  readonly limits: KindLimits;
  readonly attaching?: Attaching<Message>;
}

/** All kinds of messages that go one way, by their `type`. A kind's number is its place in this list. */
export type MessageKinds<Message extends { readonly type: string }> = {
  readonly [Type in Message["type"]]: MessageKind<Extract<Message, { type: Type }>>;
};

/** Bytes in a KiB and a MiB. */
export const KIB = 1024;
export const MIB = 1024 * KIB;

/** A message of a few numbers and words. */
export const SHORT: MessageKind = {
  limits: { json: 4 * KIB, depth: 4, values: 64, attachments: 0, binary: 0 },
};

/** One that carries a sentence for people; each of its characters takes six bytes at most. */
export const SENTENCE: MessageKind = {
  limits: { json: 64 * KIB, depth: 4, values: 16, attachments: 0, binary: 0 },
};
