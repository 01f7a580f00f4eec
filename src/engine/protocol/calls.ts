import { z } from "zod";
import { MAX_ADAPTER_SCALE, MAX_ADAPTERS } from "./generation.ts";

/** What the short calls take and return: embed, rerank, tokenize and pieces. */

export const embeddingResultSchema = z.object({
  /** L2-normalized. */
  vector: z.array(z.number()),
  tokens: z.int().min(0),
});
export type EmbeddingResult = z.infer<typeof embeddingResultSchema>;

export const rerankResultSchema = z.object({
  /** Raw logit: higher is more relevant. */
  score: z.number(),
  tokens: z.int().min(0),
});
export type RerankResult = z.infer<typeof rerankResultSchema>;

/** How to tokenize a text. */
export const tokenizeOptionsSchema = z.object({
  /** Add the tokens that begin and end a text, where the model's vocabulary asks for them. */
  addSpecial: z.boolean(),
  /** Recognize special tokens that are spelled out in the text; otherwise they are ordinary text. */
  parseSpecial: z.boolean(),
});
export type TokenizeOptions = z.infer<typeof tokenizeOptionsSchema>;

/** Token ids, as a typed array because that is much smaller when sent between processes. */
export const tokenIdsSchema = z.instanceof(Int32Array);
export type TokenIds = z.infer<typeof tokenIdsSchema>;

export const tokenPiecesSchema = z.object({
  /** The text of all tokens, concatenated; special tokens are spelled out. */
  bytes: z.instanceof(Uint8Array),
  /** Where each token's bytes end. */
  ends: z.instanceof(Int32Array),
});
/** The text of tokens as bytes, because one character may be spread over several tokens. */
export type TokenPieces = z.infer<typeof tokenPiecesSchema>;

/**
 * Calls for the slots of an engine. A saved state is longer than a message may be, so it is kept in the engine while it is
 * read or written in pieces: save, then read; or begin, write, then restore. An engine keeps one at a time.
 */

/** Most bytes of a state in one message. */
export const STATE_PIECE_BYTES = 4 * 1024 * 1024;

const slot = z.int().min(0).max(63);
const offset = z.int().min(0);
const data = z.instanceof(Uint8Array);

/** Of each adapter that is loaded, with which a state was computed. */
export const adapterScalesSchema = z
  .array(z.number().min(-MAX_ADAPTER_SCALE).max(MAX_ADAPTER_SCALE))
  .max(MAX_ADAPTERS);

export const slotRequestSchema = z.discriminatedUnion("action", [
  z.object({ action: z.literal("list") }),
  z.object({ action: z.literal("save"), slot, most: z.int().min(0) }),
  z.object({ action: z.literal("read"), offset }),
  z.object({ action: z.literal("begin"), bytes: z.int().min(1) }),
  z.object({ action: z.literal("write"), offset, data }),
  z.object({
    action: z.literal("restore"),
    slot,
    tokens: tokenIdsSchema,
    scales: adapterScalesSchema,
  }),
  z.object({ action: z.literal("erase"), slot }),
  z.object({ action: z.literal("drop") }),
  /** Keeps a slot for requests that name it, until it is released. */
  z.object({ action: z.literal("reserve"), slot }),
  z.object({ action: z.literal("release"), slot }),
]);
export type SlotRequest = z.infer<typeof slotRequestSchema>;

export const slotResultSchema = z.discriminatedUnion("action", [
  z.object({
    action: z.literal("list"),
    slots: z.array(
      z.object({
        tokens: z.int().min(0),
        isBusy: z.boolean(),
        /** Grows with each use; less than 0: never used. */
        lastUsed: z.number(),
      }),
    ),
  }),
  z.object({
    action: z.literal("save"),
    bytes: z.int().min(0),
    tokens: tokenIdsSchema,
    scales: adapterScalesSchema,
  }),
  z.object({ action: z.literal("read"), data }),
  z.object({ action: z.literal("erase"), tokens: z.int().min(0) }),
  /** Whether another request has the slot. */
  z.object({ action: z.literal("reserve"), isBusy: z.boolean() }),
  z.object({ action: z.literal("done") }),
]);
export type SlotResult = z.infer<typeof slotResultSchema>;
