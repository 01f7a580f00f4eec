import { z } from "zod";
import { adapterScalesSchema } from "./generation.ts";

/** Arguments and results of the calls embed, rerank, tokenize and pieces. */

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

export const tokenizeOptionsSchema = z.object({
  /** Add the tokens that begin and end a text, if the model's vocabulary has them. */
  addSpecial: z.boolean(),
  /** Recognize special tokens that are spelled out in the text; otherwise they are ordinary text. */
  parseSpecial: z.boolean(),
});
export type TokenizeOptions = z.infer<typeof tokenizeOptionsSchema>;

/** Token IDs as a typed array, which is sent between processes as 4 bytes per token. */
export const tokenIdsSchema = z.instanceof(Int32Array);
export type TokenIds = z.infer<typeof tokenIdsSchema>;

export const tokenPiecesSchema = z.object({
  /** The text of all tokens, concatenated; special tokens are spelled out. */
  bytes: z.instanceof(Uint8Array),
  /** Offset in `bytes` at which each token ends. */
  ends: z.instanceof(Int32Array),
});
/** The text of tokens as bytes, because a character may consist of several tokens. */
export type TokenPieces = z.infer<typeof tokenPiecesSchema>;

/**
 * Calls for the slots of an engine. The state of a slot (its KV cache) can exceed the size of a message, so the engine
 * buffers it while it is transferred in chunks. To save a slot: `save`, then `read` until the end. To restore one:
 * `begin`, `write` until the end, then `restore`. An engine has one such buffer.
 */

/** Maximum bytes of a slot's state in one message. */
export const STATE_CHUNK_BYTES = 4 * 1024 * 1024;

const slot = z.int().min(0).max(63);
const offset = z.int().min(0);
const data = z.instanceof(Uint8Array);
/** Tokens of a state, and the scales with which it was computed. */
const state = { tokens: tokenIdsSchema, scales: adapterScalesSchema };

export const slotRequestSchema = z.discriminatedUnion("action", [
  z.object({ action: z.literal("list") }),
  /** Fails if the state has more than `most` bytes. */
  z.object({ action: z.literal("save"), slot, most: z.int().min(0) }),
  z.object({ action: z.literal("read"), offset }),
  z.object({ action: z.literal("begin"), bytes: z.int().min(1) }),
  z.object({ action: z.literal("write"), offset, data }),
  z.object({ action: z.literal("restore"), slot, ...state }),
  z.object({ action: z.literal("erase"), slot }),
  z.object({ action: z.literal("drop") }),
  /** Reserves a slot for requests that name it, until it is released. */
  z.object({ action: z.literal("reserve"), slot }),
  z.object({ action: z.literal("release"), slot }),
]);
export type SlotRequest = z.infer<typeof slotRequestSchema>;

export const slotListSchema = z.array(
  z.object({
    tokens: z.int().min(0),
    isBusy: z.boolean(),
    /** Increases with each use; negative for a slot that was never used. */
    lastUsed: z.number(),
  }),
);

export type SlotList = z.infer<typeof slotListSchema>;

export const savedStateSchema = z.object({ bytes: z.int().min(0), ...state });

export const slotResultSchema = z.discriminatedUnion("action", [
  z.object({ action: z.literal("list"), slots: slotListSchema }),
  z.object({ action: z.literal("save"), ...savedStateSchema.shape }),
  z.object({ action: z.literal("read"), data }),
  z.object({ action: z.literal("erase"), tokens: z.int().min(0) }),
  /** `isBusy`: another request is using the slot. */
  z.object({ action: z.literal("reserve"), isBusy: z.boolean() }),
  z.object({ action: z.literal("done") }),
]);
export type SlotResult = z.infer<typeof slotResultSchema>;
