import { z } from "zod";
import { STATE_PIECE_BYTES } from "../protocol/calls.ts";
import type { ContentPart } from "../protocol/generation.ts";
import type { DaemonMessage, EngineMessage } from "../protocol/messages.ts";
import {
  fromBytes,
  KIB,
  type MessageKind,
  type MessageKinds,
  MIB,
  propertyOf,
  SENTENCE,
  SHORT,
  toBytes,
} from "./message-kinds.ts";

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

const slotsSchema = z.looseObject({ request: z.looseObject({ action: z.string() }) });

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

/** Token ids of the longest text that may be tokenized: four per character. */
const MAX_TOKENS_BYTES = 16 * MIB;

/** Bytes of the largest batch of tokens that may be turned into text, with the end of each. */
const MAX_PIECES_BYTES = 32 * MIB;

/** The longest embedding, at eight bytes per number. */
const MAX_VECTOR_BYTES = MIB;

type EngineMessageKindsSlots = Extract<EngineMessage, { type: "slots" }>;

/** A piece of a state, or tokens. */
function engineMessageKindsDetachFromSlots({ result, ...message }: EngineMessageKindsSlots): {
  rest: object;
  attachments: Uint8Array[];
} {
  if (result.action === "read") {
    const { data, ...rest } = result;
    return { rest: { ...message, result: rest }, attachments: [data] };
  }
  if (result.action === "save") {
    const { tokens, ...rest } = result;
    return { rest: { ...message, result: rest }, attachments: [toBytes(tokens)] };
  }
  return { rest: { ...message, result }, attachments: [] };
}

function engineMessageKindsAttachToSlots(rest: object, [bytes]: readonly Uint8Array[]): object {
  if (!bytes) return rest;
  const result = propertyOf(rest, "result");
  const isPiece = "action" in result && result.action === "read";
  const attached = isPiece
    ? { data: fromBytes(Uint8Array, bytes) }
    : { tokens: fromBytes(Int32Array, bytes) };
  return { ...rest, result: { ...result, ...attached } };
}

/** Messages from an engine to the daemon. They may be forged, so the limits of each kind are as tight as possible. */
export const ENGINE_MESSAGE_KINDS: MessageKinds<EngineMessage> = {
  "load-progress": SHORT,
  loaded: SHORT,
  "load-failed": SENTENCE,
  // Text with twenty alternatives per token; what does not fit is split over several messages.
  events: { limits: { json: MIB / 2, depth: 8, values: 16_384, attachments: 0, binary: 0 } },
  embedded: {
    limits: { ...SHORT.limits, attachments: 1, binary: MAX_VECTOR_BYTES },
    attaching: {
      detach: ({ result, ...message }) => ({
        rest: { ...message, result: { tokens: result.tokens } },
        attachments: [toBytes(Float64Array.from(result.vector))],
      }),
      attach: (rest, [vector]) => ({
        ...rest,
        result: { ...propertyOf(rest, "result"), vector: Array.from(fromBytes(Float64Array, vector)) },
      }),
    },
  },
  reranked: SHORT,
  tokenized: {
    limits: { ...SHORT.limits, attachments: 1, binary: MAX_TOKENS_BYTES },
    attaching: {
      detach: ({ tokens, ...rest }) => ({ rest, attachments: [toBytes(tokens)] }),
      attach: (rest, [tokens]) => ({ ...rest, tokens: fromBytes(Int32Array, tokens) }),
    },
  },
  pieces: {
    limits: { ...SHORT.limits, attachments: 2, binary: MAX_PIECES_BYTES },
    attaching: {
      detach: ({ pieces, ...rest }) => ({
        rest,
        attachments: [pieces.bytes, toBytes(pieces.ends)],
      }),
      attach: (rest, [bytes, ends]) => ({
        ...rest,
        pieces: { bytes: fromBytes(Uint8Array, bytes), ends: fromBytes(Int32Array, ends) },
      }),
    },
  },
  slots: {
    // The tokens of a context are fewer bytes than that.
    limits: { json: 16 * KIB, depth: 4, values: 1024, attachments: 1, binary: STATE_PIECE_BYTES },
    attaching: { detach: engineMessageKindsDetachFromSlots, attach: engineMessageKindsAttachToSlots },
  },
  "call-failed": SENTENCE,
  cancelled: SHORT,
  memory: SHORT,
  fatal: SENTENCE,
};
