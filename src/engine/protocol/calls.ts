import { z } from "zod";

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

/** How a text becomes tokens. */
export const tokenizeOptionsSchema = z.object({
  /** Put the tokens that begin and end a text around it, where the model's vocabulary says so. */
  addSpecial: z.boolean(),
  /** Read special tokens where they are spelled out in the text; else they are text like any other. */
  parseSpecial: z.boolean(),
});
export type TokenizeOptions = z.infer<typeof tokenizeOptionsSchema>;

/** Token ids; an array of numbers would be much larger when sent between processes. */
export const tokenIdsSchema = z.instanceof(Int32Array);
export type TokenIds = z.infer<typeof tokenIdsSchema>;

export const tokenPiecesSchema = z.object({
  /** What the tokens stand for, one after the other; special tokens are spelled out. */
  bytes: z.instanceof(Uint8Array),
  /** Where each token's bytes end. */
  ends: z.instanceof(Int32Array),
});
/** The bytes of tokens: a character may be spread over several of them. */
export type TokenPieces = z.infer<typeof tokenPiecesSchema>;
