import type { AnswerToken } from "../api/native/native-answer-fields.ts";
import type { ExperimentResult } from "../api/native/experiment.ts";

/** Comparison of two results of an experiment. */
export interface Comparison {
  /** True if tokens, text, tool calls and finish reason are equal. */
  readonly isSame: boolean;
  /** Number of equal tokens at the beginning. */
  readonly sameTokens: number;
  /** The first tokens that differ. One is undefined if that answer is shorter. */
  readonly left: AnswerToken | undefined;
  readonly right: AnswerToken | undefined;
  /** Maximum difference between log-probabilities of equal tokens, including alternatives. */
  readonly logprobDifference: number;
}

/** Compares the generated output of two results. Ignores timings and machines. */
export function compareResults(left: ExperimentResult, right: ExperimentResult): Comparison {
  const shorter = Math.min(left.tokens.length, right.tokens.length);
  let sameTokens = 0;
  while (sameTokens < shorter && left.tokens[sameTokens]?.id === right.tokens[sameTokens]?.id)
    sameTokens += 1;
  const pairs = left.tokens.slice(0, sameTokens).map((token, at) => [token, right.tokens[at]] as const);
  const isSame =
    sameTokens === Math.max(left.tokens.length, right.tokens.length) && outcomeOf(left) === outcomeOf(right);
  return {
    isSame,
    sameTokens,
    left: left.tokens[sameTokens],
    right: right.tokens[sameTokens],
    logprobDifference: Math.max(
      0,
      ...pairs.map(([one, other]) => (other ? maxLogprobDifference(one, other) : 0)),
    ),
  };
}

/** Returns all output besides the tokens, without the random IDs of tool calls. */
function outcomeOf({
  text,
  thinking,
  tool_calls: calls,
  done_reason: reason,
  completion_tokens,
}: ExperimentResult): string {
  return JSON.stringify([text, thinking, calls?.map((call) => call.function), reason, completion_tokens]);
}

function maxLogprobDifference(one: AnswerToken, other: AnswerToken): number {
  const logprobs = new Map(other.top.map(({ id, logprob }) => [id, logprob]));
  const alternatives = one.top.map(({ id, logprob }) => Math.abs(logprob - (logprobs.get(id) ?? logprob)));
  return Math.max(Math.abs(one.logprob - other.logprob), ...alternatives);
}
