import type { EngineMessage } from "../protocol/messages.ts";
import { STATE_PIECE_BYTES } from "../protocol/slots.ts";
import {
  fromBytes,
  type MessageKinds,
  KIB,
  MIB,
  propertyOf,
  SENTENCE,
  SHORT,
  toBytes,
} from "./message-kinds.ts";

/** Token ids of the longest text that may be tokenized: four per character. */
const MAX_TOKENS_BYTES = 16 * MIB;

/** Bytes of the largest batch of tokens that may be turned into text, with the end of each. */
const MAX_PIECES_BYTES = 32 * MIB;

/** The longest embedding, at eight bytes per number. */
const MAX_VECTOR_BYTES = MIB;

type Slots = Extract<EngineMessage, { type: "slots" }>;

/** A piece of a state, or tokens. */
function detachFromSlots({ result, ...message }: Slots): { rest: object; attachments: Uint8Array[] } {
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

function attachToSlots(rest: object, [bytes]: readonly Uint8Array[]): object {
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
    attaching: { detach: detachFromSlots, attach: attachToSlots },
  },
  "call-failed": SENTENCE,
  cancelled: SHORT,
  memory: SHORT,
  fatal: SENTENCE,
};
