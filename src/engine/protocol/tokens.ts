import { z } from "zod";

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
