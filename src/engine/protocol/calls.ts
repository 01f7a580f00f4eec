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
