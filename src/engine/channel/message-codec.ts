import { exceededBound } from "../../json/json-bounds.ts";
import { ChannelError, encodeFrame, type Frame, type FrameLimits } from "./frame.ts";
import type { KindLimits, MessageKind, MessageKinds } from "./message-kinds.ts";

/** The message exceeds the limits of its kind, so the receiver would reject it. */
export class MessageTooLargeError extends Error {}

/** Encodes and decodes the messages of one direction of a channel. */
export class MessageCodec<Message extends { readonly type: string }> {
  readonly #kinds: readonly (readonly [type: string, kind: MessageKind<Message>])[];
  readonly #numbers: ReadonlyMap<string, number>;

  constructor(kinds: MessageKinds<Message>) {
    this.#kinds = Object.entries<MessageKind<Message>>(kinds);
    this.#numbers = new Map(this.#kinds.map(([type], number) => [type, number]));
  }

  readonly limitsOf = (number: number): FrameLimits | undefined => this.#kinds[number]?.[1].limits;

  /**
   * @returns the chunks to write, in order
   * @throws MessageTooLargeError if the message exceeds the limits of its kind; TypeError if it cannot be written as
   *   JSON
   */
  encode(message: Message): Uint8Array[] {
    const number = this.#numbers.get(message.type) ?? -1;
    const kind = this.#kinds[number]?.[1];
    if (!kind) throw new TypeError(`Unknown message type: ${message.type}.`);
    const { rest, attachments } = kind.attachmentCodec?.detach(message) ?? {
      rest: message,
      attachments: [],
    };
    const json = JSON.stringify(rest);
    checkSize(kind.limits, json, attachments);
    return [encodeFrame(number, json, attachments), ...attachments];
  }

  /**
   * Returns the content of a frame, which the caller has to validate.
   * @throws ChannelError if it is not a message of its kind
   */
  decode({ kind: number, json, attachments }: Frame): unknown {
    const [type, kind] = this.#kinds[number] ?? [];
    if (!kind) throw new ChannelError("has an unknown kind");
    const text = Buffer.from(json.buffer, json.byteOffset, json.length).toString();
    const exceeded = exceededBound(text, kind.limits);
    if (exceeded === "depth") throw new ChannelError(`is nested more than ${kind.limits.depth} levels deep`);
    if (exceeded === "values") throw new ChannelError(`has more than ${kind.limits.values} values`);
    try {
      const value: unknown = JSON.parse(text);
      if (typeof value !== "object" || value === null) throw new TypeError("is not an object");
      if (!("type" in value) || value.type !== type)
        throw new TypeError("is not of the kind that its frame states");
      return kind.attachmentCodec?.attach(value, attachments) ?? value;
    } catch (error) {
      throw new ChannelError(error instanceof TypeError ? error.message : "is not JSON", { cause: error });
    }
  }
}

function checkSize(limits: KindLimits, json: string, attachments: readonly Uint8Array[]): void {
  const binary = attachments.reduce((bytes, { byteLength }) => bytes + byteLength, 0);
  // Each value takes at least two bytes: itself and a separator. Only longer JSON has to be parsed.
  const mayHaveTooManyValues = json.length > 2 * limits.values;
  if (
    Buffer.byteLength(json) > limits.json ||
    binary > limits.binary ||
    attachments.length > limits.attachments ||
    (mayHaveTooManyValues && exceededBound(json, limits) !== undefined)
  ) {
    throw new MessageTooLargeError("The message is too large.");
  }
}
