import { z } from "zod";
import type { TokenLogprob } from "../../engine/protocol/generation.ts";

const tokenShape = {
  id: z.int().describe("Number of the token in the model's vocabulary."),
  token: z.string().describe("Its text."),
  bytes: z.array(z.int()).optional().describe("Its bytes, if they are not valid UTF-8 by themselves."),
  logprob: z.number().describe("Natural logarithm of its probability, before sampling."),
};

export const answerTokenSchema = z
  .object({
    ...tokenShape,
    top: z.array(z.object(tokenShape)).describe("The most likely tokens at this place."),
  })
  .meta({ id: "AnswerToken" });
/** A token of an answer, as the daemon's own API reports it. */
export type AnswerToken = z.output<typeof answerTokenSchema>;

const ENCODER = new TextEncoder();

/** For answers and pieces of them. */
export const logprobsField = {
  logprobs: z
    .array(answerTokenSchema)
    .optional()
    .describe("Tokens of the text, if the request asks for them."),
};

/** The field of {@link logprobsField}, if there are any tokens. */
export function tokenFields(logprobs: readonly TokenLogprob[] | undefined): { logprobs?: AnswerToken[] } {
  return logprobs && logprobs.length > 0 ? { logprobs: logprobs.map(toAnswerToken) } : {};
}

export function toAnswerToken({ top, ...token }: TokenLogprob): AnswerToken {
  return { ...withBytes(token), top: top.map(withBytes) };
}

/** Most tokens are text, whose bytes are known. */
function withBytes({ id, token, bytes, logprob }: Omit<TokenLogprob, "top">): Omit<AnswerToken, "top"> {
  const isText = bytes === null || sameBytes(ENCODER.encode(token), bytes);
  return { id, token, ...(!isText && { bytes }), logprob };
}

function sameBytes(left: Uint8Array, right: readonly number[]): boolean {
  return left.length === right.length && left.every((byte, index) => byte === right[index]);
}
