import { KIB, MIB } from "../../json/quantities.ts";
import { STATE_CHUNK_BYTES } from "../protocol/calls.ts";
import type { DaemonMessage, EngineMessage } from "../protocol/messages.ts";
import { type MessageKind, type MessageKinds, SHORT_MESSAGE, TEXT_MESSAGE } from "./message-kinds.ts";

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

/** Messages from the daemon to an engine. */
export const DAEMON_MESSAGE_KINDS: MessageKinds<DaemonMessage> = {
  load: UNLIMITED,
  generate: {
    limits: { ...UNLIMITED.limits, attachments: MAX_MEDIA, binary: 512 * MIB },
    binary: { "request.input.messages.*.content.*.data": "bytes" },
  },
  embed: UNLIMITED,
  rerank: UNLIMITED,
  tokenize: UNLIMITED,
  pieces: {
    limits: { ...UNLIMITED.limits, attachments: 1, binary: 512 * MIB },
    binary: { tokens: "int32" },
  },
  slots: {
    limits: { ...UNLIMITED.limits, attachments: 1, binary: 512 * MIB },
    binary: { "request.data": "bytes", "request.tokens": "int32" },
  },
  cancel: UNLIMITED,
  memory: UNLIMITED,
};

/** Maximum bytes of the token IDs of a text. */
const MAX_TOKENS_BYTES = 16 * MIB;

/** Maximum bytes of the text of tokens and of its offsets. */
const MAX_TOKEN_TEXT_BYTES = 32 * MIB;

/** Maximum bytes of an embedding, with eight bytes per number. */
const MAX_VECTOR_BYTES = MIB;

/** Messages from an engine to the daemon. They may be forged, so each kind has tight limits. */
export const ENGINE_MESSAGE_KINDS: MessageKinds<EngineMessage> = {
  "load-progress": SHORT_MESSAGE,
  loaded: SHORT_MESSAGE,
  "load-failed": TEXT_MESSAGE,
  // Allows text with 20 alternatives per token. Larger events are split into several messages.
  events: { limits: { json: MIB / 2, depth: 8, values: 16_384, attachments: 0, binary: 0 } },
  embedded: {
    limits: { ...SHORT_MESSAGE.limits, attachments: 1, binary: MAX_VECTOR_BYTES },
    binary: { "result.vector": "numbers" },
  },
  reranked: SHORT_MESSAGE,
  tokenized: {
    limits: { ...SHORT_MESSAGE.limits, attachments: 1, binary: MAX_TOKENS_BYTES },
    binary: { result: "int32" },
  },
  pieces: {
    limits: { ...SHORT_MESSAGE.limits, attachments: 2, binary: MAX_TOKEN_TEXT_BYTES },
    binary: { "result.bytes": "bytes", "result.ends": "int32" },
  },
  slots: {
    // The token IDs of a context also fit into this limit.
    limits: { json: 16 * KIB, depth: 4, values: 1024, attachments: 1, binary: STATE_CHUNK_BYTES },
    binary: { "result.data": "bytes", "result.tokens": "int32" },
  },
  "call-failed": TEXT_MESSAGE,
  cancelled: SHORT_MESSAGE,
  memory: SHORT_MESSAGE,
  fatal: TEXT_MESSAGE,
};
