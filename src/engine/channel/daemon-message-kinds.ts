import { z } from "zod";
import type { ContentPart } from "../protocol/generation.ts";
import type { DaemonMessage } from "../protocol/messages.ts";
import { fromBytes, type MessageKind, type MessageKinds, MIB, toBytes } from "./message-kinds.ts";

type Slots = Extract<DaemonMessage, { type: "slots" }>;
type Generate = Extract<DaemonMessage, { type: "generate" }>;

/** Engines trust the daemon, which limits requests itself (`http.body_limit`, request-limits.ts). */
const ANY: MessageKind = {
  limits: {
    json: 512 * MIB,
    depth: Number.POSITIVE_INFINITY,
    values: Number.POSITIVE_INFINITY,
    attachments: 0,
    binary: 0,
  },
};

/** Most images and recordings in one request: the largest number of attachments that a frame can state. */
const MAX_MEDIA = 0xffff;

/** Messages from the daemon to an engine. */
export const DAEMON_MESSAGE_KINDS: MessageKinds<DaemonMessage> = {
  load: ANY,
  generate: {
    limits: { ...ANY.limits, attachments: MAX_MEDIA, binary: 512 * MIB },
    attaching: { detach: detachMedia, attach: attachMedia },
  },
  embed: ANY,
  rerank: ANY,
  tokenize: ANY,
  pieces: {
    limits: { ...ANY.limits, attachments: 1, binary: 512 * MIB },
    attaching: {
      detach: ({ tokens, ...rest }) => ({ rest, attachments: [toBytes(tokens)] }),
      attach: (rest, [tokens]) => ({ ...rest, tokens: fromBytes(Int32Array, tokens) }),
    },
  },
  slots: {
    limits: { ...ANY.limits, attachments: 1, binary: 512 * MIB },
    attaching: { detach: detachFromSlots, attach: attachToSlots },
  },
  cancel: ANY,
  memory: ANY,
};

/** A piece of a state, or tokens. */
function detachFromSlots({ request, ...message }: Slots): { rest: object; attachments: Uint8Array[] } {
  if (request.action === "write") {
    const { data, ...rest } = request;
    return { rest: { ...message, request: rest }, attachments: [data] };
  }
  if (request.action === "restore") {
    const { tokens, ...rest } = request;
    return { rest: { ...message, request: rest }, attachments: [toBytes(tokens)] };
  }
  return { rest: { ...message, request }, attachments: [] };
}

const slotsSchema = z.looseObject({ request: z.looseObject({ action: z.string() }) });

function attachToSlots(rest: object, [bytes]: readonly Uint8Array[]): object {
  if (!bytes) return rest;
  const { request, ...message } = slotsSchema.parse(rest);
  const attached =
    request.action === "write"
      ? { data: fromBytes(Uint8Array, bytes) }
      : { tokens: fromBytes(Int32Array, bytes) };
  return { ...message, request: { ...request, ...attached } };
}

/** In the JSON, the data of an image or a recording is replaced by the index of its attachment. */
function detachMedia(message: Generate): { rest: object; attachments: Uint8Array[] } {
  const { input } = message.request;
  const attachments: Uint8Array[] = [];
  if (input.kind !== "chat" || !input.messages.some(hasMedia)) return { rest: message, attachments };
  const withoutData = (part: ContentPart): object =>
    part.type === "text" ? part : { ...part, data: attachments.push(part.data) - 1 };
  const messages = input.messages.map((turn) => ({ ...turn, content: turn.content.map(withoutData) }));
  const request = { ...message.request, input: { ...input, messages } };
  return { rest: { ...message, request }, attachments };
}

function hasMedia({ content }: { content: readonly ContentPart[] }): boolean {
  return content.some((part) => part.type !== "text");
}

/** The parts of a chat that are needed to find its media. */
const chatSchema = z.looseObject({
  request: z.looseObject({
    input: z.looseObject({
      messages: z.array(
        z.looseObject({ content: z.array(z.looseObject({ type: z.string(), data: z.int().optional() })) }),
      ),
    }),
  }),
});

function attachMedia(rest: object, attachments: readonly Uint8Array[]): object {
  if (attachments.length === 0) return rest;
  const message = chatSchema.parse(rest);
  const { input } = message.request;
  const messages = input.messages.map((turn) => ({
    ...turn,
    content: turn.content.map((part) =>
      part.type === "text" ? part : { ...part, data: fromBytes(Uint8Array, attachments[part.data ?? -1]) },
    ),
  }));
  return { ...message, request: { ...message.request, input: { ...input, messages } } };
}
