import type { ExperimentResult } from "../../dialects/native/experiment.ts";
import type { Comparison } from "../../experiments/compare-results.ts";
import { printable } from "./printable.ts";

/** Tokens shown before the first that differs. */
const SHOWN_BEFORE = 8;

/**
 * How two results of an experiment compare, for people.
 * @param names of the two results
 */
export function comparisonLines(
  { isSame, sameTokens, logprobDifference, ...first }: Comparison,
  left: ExperimentResult,
  right: ExperimentResult,
  names: readonly [string, string],
): string[] {
  const logprobs =
    logprobDifference === 0
      ? "log-probabilities equal to the last bit"
      : `log-probabilities differ by at most ${logprobDifference.toPrecision(3)}`;
  if (isSame) return [`Same: ${sameTokens} tokens, ${logprobs}.`];
  const lines = [
    `Differs at token ${sameTokens + 1} (of ${left.tokens.length} and ${right.tokens.length}); until there ${logprobs}.`,
  ];
  for (const [name, token, { tokens }] of [
    [names[0], first.left, left],
    [names[1], first.right, right],
  ] as const) {
    const before = printable(
      tokens
        .slice(Math.max(0, sameTokens - SHOWN_BEFORE), sameTokens)
        .map((each) => each.token)
        .join(""),
    );
    lines.push(`  ${name.padEnd(8)} ${JSON.stringify(before)} + ${token ? shown(token) : "the end"}`);
    if (token && token.top.length > 0) lines.push(`           of ${token.top.map(shown).join(", ")}`);
  }
  return lines;
}

function shown({ token, logprob }: { token: string; logprob: number }): string {
  return `${printable(JSON.stringify(token))} (${(100 * Math.exp(logprob)).toFixed(1)} %)`;
}
