import type { EngineMessage } from "../protocol/messages.ts";
import { MIB, type MessageKinds, SENTENCE, SHORT } from "./message-kinds.ts";
import { fromBytes, propertyOf, toBytes } from "./typed-arrays.ts";

/** Token ids of the longest text that may be tokenized, four for each of its characters. */
const MAX_TOKENS_BYTES = 16 * MIB;

/** Bytes of the most tokens that may be turned into text at once, and where each ends. */
const MAX_PIECES_BYTES = 32 * MIB;

/** Numbers of the longest embedding, of eight bytes each. */
const MAX_VECTOR_BYTES = MIB;

/** What an engine says: whatever comes through may be forged, so each kind has the least room that it needs. */
export const ENGINE_MESSAGE_KINDS: MessageKinds<EngineMessage> = {
  "load-progress": SHORT,
  loaded: SHORT,
  "load-failed": SENTENCE,
  // Pieces of text with twenty alternatives for each token; the engine sends several messages where one is too small.
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
  "call-failed": SENTENCE,
  cancelled: SHORT,
  memory: SHORT,
  fatal: SENTENCE,
};
