import { exceededBound } from "../../json/json-bounds.ts";
import { isRecord } from "../../json/json-values.ts";
import { ChannelError, encodeFrame, type Frame, type FrameLimits } from "./frame.ts";
import { fromBytes, type KindLimits, type MessageKind, type MessageKinds, toBytes } from "./message-kinds.ts";

/** The message exceeds the limits of its kind, so the receiver would reject it. */
export class MessageTooLargeError extends Error {}

/** Encodes and decodes the messages of one direction of a channel. */
export class MessageCodec<Message extends { readonly type: string }> {
  readonly #kinds: readonly (readonly [type: string, kind: MessageKind])[];
  readonly #numbers: ReadonlyMap<string, number>;

  constructor(kinds: MessageKinds<Message>) {
    this.#kinds = Object.entries<MessageKind>(kinds);
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
    const attachments: Uint8Array[] = [];
    const rest = replaceBinary(message, kind, (value, form) => {
      const bytes = toBytes(value, form);
      return bytes ? { attachment: attachments.push(bytes) - 1 } : value;
    });
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
      let attached = 0;
      const whole = replaceBinary(value, kind, (place, form) => {
        if (!isRecord(place) || typeof place["attachment"] !== "number") return place;
        if (place["attachment"] !== attached) throw new TypeError("has its attachments in another order");
        return fromBytes(attachments[attached++], form);
      });
      if (attached !== attachments.length) throw new TypeError("has other attachments than it names");
      return whole;
    } catch (error) {
      throw new ChannelError(error instanceof TypeError ? error.message : "is not JSON", { cause: error });
    }
  }
}

type Replace = (value: unknown, form: Parameters<typeof toBytes>[1]) => unknown;

/** Replaces what is at the paths of a message's binary data. Copies only what contains it. */
function replaceBinary(message: object, { binary = {} }: MessageKind, replace: Replace): unknown {
  let replaced: unknown = message;
  for (const [path, form] of Object.entries(binary))
    replaced = replaceAt(replaced, path.split("."), 0, (value) => replace(value, form));
  return replaced;
}

/** @param at index of the first key of the path that applies to the value */
function replaceAt(
  value: unknown,
  path: readonly string[],
  at: number,
  replace: (value: unknown) => unknown,
): unknown {
  const key = path[at];
  if (key === undefined) return replace(value);
  if (key === "*" && Array.isArray(value)) {
    const items = value.map((item) => replaceAt(item, path, at + 1, replace));
    return items.some((item, index) => item !== value[index]) ? items : value;
  }
  if (!isRecord(value) || !Object.hasOwn(value, key)) return value;
  const part = replaceAt(value[key], path, at + 1, replace);
  return part === value[key] ? value : { ...value, [key]: part };
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
