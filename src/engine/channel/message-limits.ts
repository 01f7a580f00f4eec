import { KIB, MIB } from "../../json/quantities.ts";
import { z } from "zod";
import { STATE_CHUNK_BYTES } from "../protocol/calls.ts";
import type { ContentPart } from "../protocol/generation.ts";
import type { DaemonMessage, EngineMessage } from "../protocol/messages.ts";
import {
  fromBytes,
  type MessageKind,
  type MessageKinds,
  propertyOf,
  TEXT_MESSAGE,
  SHORT_MESSAGE,
  toBytes,
} from "./message-kinds.ts";

type SlotsRequestMessage = Extract<DaemonMessage, { type: "slots" }>;
type GenerateMessage = Extract<DaemonMessage, { type: "generate" }>;

/** Kind of a message from the daemon. Engines trust the daemon, which limits requests (`http.body_limit`). */
const UNLIMITED: MessageKind = {
  limits: {
    json: 512 * MIB,
    depth: Number.POSITIVE_INFINITY,
    values: Number.POSITIVE_INFINITY,
    attachments: 0,
    binary: 0,
  },
};

/** Maximum images and recordings in one request: the largest attachment count of a frame. */
const MAX_MEDIA = 0xffff;

const slotsSchema = z.looseObject({ request: z.looseObject({ action: z.string() }) });

/** The parts of a chat request that contain its media. */
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
  load: UNLIMITED,
  generate: {
    limits: { ...UNLIMITED.limits, attachments: MAX_MEDIA, binary: 512 * MIB },
    attachmentCodec: { detach: detachMedia, attach: attachMedia },
  },
  embed: UNLIMITED,
  rerank: UNLIMITED,
  tokenize: UNLIMITED,
  pieces: {
    limits: { ...UNLIMITED.limits, attachments: 1, binary: 512 * MIB },
    attachmentCodec: {
      detach: ({ tokens, ...rest }) => ({ rest, attachments: [toBytes(tokens)] }),
      attach: (rest, [tokens]) => ({ ...rest, tokens: fromBytes(Int32Array, tokens) }),
    },
  },
  slots: {
    limits: { ...UNLIMITED.limits, attachments: 1, binary: 512 * MIB },
    attachmentCodec: { detach: detachFromSlotsRequest, attach: attachToSlotsRequest },
  },
  cancel: UNLIMITED,
  memory: UNLIMITED,
};

/** Detaches a chunk of a slot's state, or tokens. */
function detachFromSlotsRequest({ request, ...message }: SlotsRequestMessage): {
  rest: object;
  attachments: Uint8Array[];
} {
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

function attachToSlotsRequest(rest: object, [bytes]: readonly Uint8Array[]): object {
  if (!bytes) return rest;
  const { request, ...message } = slotsSchema.parse(rest);
  const attached =
    request.action === "write"
      ? { data: fromBytes(Uint8Array, bytes) }
      : { tokens: fromBytes(Int32Array, bytes) };
  return { ...message, request: { ...request, ...attached } };
}

/** Detaches the data of images and recordings. In the JSON it is replaced by the index of the attachment. */
function detachMedia(message: GenerateMessage): { rest: object; attachments: Uint8Array[] } {
  const { input } = message.request;
  const attachments: Uint8Array[] = [];
  if (input.kind !== "chat" || !input.messages.some(hasMedia)) return { rest: message, attachments };
  const withoutData = (part: ContentPart): object =>
    part.type === "text" ? part : { ...part, data: attachments.push(part.data) - 1 };
  const messages = input.messages.map((each) => ({ ...each, content: each.content.map(withoutData) }));
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
  const messages = input.messages.map((each) => ({
    ...each,
    content: each.content.map((part) =>
      part.type === "text" ? part : { ...part, data: fromBytes(Uint8Array, attachments[part.data ?? -1]) },
    ),
  }));
  return { ...message, request: { ...message.request, input: { ...input, messages } } };
}

/** Maximum bytes of the token IDs of a text. */
const MAX_TOKENS_BYTES = 16 * MIB;

/** Maximum bytes of the text of tokens and of its offsets. */
const MAX_TOKEN_TEXT_BYTES = 32 * MIB;

/** Maximum bytes of an embedding, with eight bytes per number. */
const MAX_VECTOR_BYTES = MIB;

type SlotsResultMessage = Extract<EngineMessage, { type: "slots" }>;

/** Detaches a chunk of a slot's state, or tokens. */
function detachFromSlotsResult({ result, ...message }: SlotsResultMessage): {
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

function attachToSlotsResult(rest: object, [bytes]: readonly Uint8Array[]): object {
  if (!bytes) return rest;
  const result = propertyOf(rest, "result");
  const isStateChunk = "action" in result && result.action === "read";
  const attached = isStateChunk
    ? { data: fromBytes(Uint8Array, bytes) }
    : { tokens: fromBytes(Int32Array, bytes) };
  return { ...rest, result: { ...result, ...attached } };
}

/** Messages from an engine to the daemon. They may be forged, so each kind has tight limits. */
export const ENGINE_MESSAGE_KINDS: MessageKinds<EngineMessage> = {
  "load-progress": SHORT_MESSAGE,
  loaded: SHORT_MESSAGE,
  "load-failed": TEXT_MESSAGE,
  // Allows text with 20 alternatives per token. Larger events are split into several messages.
  events: { limits: { json: MIB / 2, depth: 8, values: 16_384, attachments: 0, binary: 0 } },
  embedded: {
    limits: { ...SHORT_MESSAGE.limits, attachments: 1, binary: MAX_VECTOR_BYTES },
    attachmentCodec: {
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
  reranked: SHORT_MESSAGE,
  tokenized: {
    limits: { ...SHORT_MESSAGE.limits, attachments: 1, binary: MAX_TOKENS_BYTES },
    attachmentCodec: {
      detach: ({ tokens, ...rest }) => ({ rest, attachments: [toBytes(tokens)] }),
      attach: (rest, [tokens]) => ({ ...rest, tokens: fromBytes(Int32Array, tokens) }),
    },
  },
  pieces: {
    limits: { ...SHORT_MESSAGE.limits, attachments: 2, binary: MAX_TOKEN_TEXT_BYTES },
    attachmentCodec: {
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
    // The token IDs of a context also fit into this limit.
    limits: { json: 16 * KIB, depth: 4, values: 1024, attachments: 1, binary: STATE_CHUNK_BYTES },
    attachmentCodec: { detach: detachFromSlotsResult, attach: attachToSlotsResult },
  },
  "call-failed": TEXT_MESSAGE,
  cancelled: SHORT_MESSAGE,
  memory: SHORT_MESSAGE,
  fatal: TEXT_MESSAGE,
};
