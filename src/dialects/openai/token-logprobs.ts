import { z } from "zod";
import type { TokenLogprob } from "../../engine/protocol/generation.ts";

const tokenSchema = z.object({ token: z.string(), logprob: z.number(), bytes: z.array(z.int()).nullable() });

/** Log-probabilities of a text's tokens, as chat completions and responses both show them. */
export const tokenLogprobsSchema = z.array(tokenSchema.extend({ top_logprobs: z.array(tokenSchema) }));
export type TokenLogprobs = z.output<typeof tokenLogprobsSchema>;

export function toTokenLogprobs(logprobs: readonly TokenLogprob[]): TokenLogprobs {
  return logprobs.map(({ token, logprob, bytes, top }) => ({ token, logprob, bytes, top_logprobs: top }));
}
