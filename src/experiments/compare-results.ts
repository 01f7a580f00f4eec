import type { AnswerToken } from "../api/native/native-answer-fields.ts";
import type { ExperimentResult } from "../api/native/experiment.ts";

/** How two results of an experiment compare. */
export interface Comparison {
  /** Neither tokens nor text, tool calls or the reason of the end differ. */
  readonly isSame: boolean;
  /** Tokens at the beginning that are the same. */
  readonly sameTokens: number;
  /** The first tokens that differ; one of them is absent where an answer ends earlier. */
  readonly left: AnswerToken | undefined;
  readonly right: AnswerToken | undefined;
  /** Largest difference between the log-probabilities of the same tokens, alternatives included. */
  readonly logprobDifference: number;
}

/** Compares what was generated; timings and places do not count. */
export function compareResults(left: ExperimentResult, right: ExperimentResult): Comparison {
  const shorter = Math.min(left.tokens.length, right.tokens.length);
  let sameTokens = 0;
  while (sameTokens < shorter && left.tokens[sameTokens]?.id === right.tokens[sameTokens]?.id)
    sameTokens += 1;
  const pairs = left.tokens.slice(0, sameTokens).map((token, at) => [token, right.tokens[at]] as const);
  const isSame =
    sameTokens === Math.max(left.tokens.length, right.tokens.length) && endOf(left) === endOf(right);
  return {
    isSame,
    sameTokens,
    left: left.tokens[sameTokens],
    right: right.tokens[sameTokens],
    logprobDifference: Math.max(0, ...pairs.map(([one, other]) => (other ? distance(one, other) : 0))),
  };
}

/** All that was generated besides the tokens; the IDs of tool calls are random. */
function endOf({
  text,
  thinking,
  tool_calls: calls,
  done_reason: reason,
  completion_tokens,
}: ExperimentResult): string {
  return JSON.stringify([text, thinking, calls?.map((call) => call.function), reason, completion_tokens]);
}

function distance(one: AnswerToken, other: AnswerToken): number {
  const logprobs = new Map(other.top.map(({ id, logprob }) => [id, logprob]));
  const alternatives = one.top.map(({ id, logprob }) => Math.abs(logprob - (logprobs.get(id) ?? logprob)));
  return Math.max(Math.abs(one.logprob - other.logprob), ...alternatives);
}
