import { expect, test } from "vitest";
import { compareResults } from "../../../src/experiments/experiments.ts";
import { RESULT, token } from "./sample-experiment.ts";
import type { ExperimentResult } from "../../../src/api/wire/native.ts";

test("results are the same if only machines and timings differ", () => {
  const inBrowser = { ...RESULT, where: "browser", machine: "a page", total_duration_ms: 900 } as const;
  expect(compareResults(RESULT, inBrowser)).toEqual({
    isSame: true,
    sameTokens: 5,
    left: undefined,
    right: undefined,
    logprobDifference: 0,
  });
});

test("the comparison contains the first differing token of both results", () => {
  const tokens = [...RESULT.tokens.slice(0, 3), token(7, " red"), token(5, ".")];
  const other = { ...RESULT, text: "The sky is red.", tokens };
  expect(compareResults(RESULT, other)).toMatchObject({
    isSame: false,
    sameTokens: 3,
    left: { token: " blue" },
    right: { token: " red" },
  });
});

test("a shorter answer differs at its end", () => {
  const short = { ...RESULT, text: "The sky", tokens: RESULT.tokens.slice(0, 2) };
  const comparison = compareResults(RESULT, short);
  expect(comparison).toMatchObject({ isSame: false, sameTokens: 2, left: { token: " is" } });
  expect(comparison.right).toBeUndefined();
});

test.each([
  ["the finish reason", { done_reason: "length" }],
  ["the number of tokens", { completion_tokens: 7 }],
  [
    "a tool call",
    { tool_calls: [{ id: "1", type: "function", function: { name: "look", arguments: "{}" } }] },
  ],
] satisfies [string, Partial<ExperimentResult>][])(
  "results with the same tokens differ if %s differs",
  (_what, change) => {
    expect(compareResults(RESULT, { ...RESULT, ...change })).toMatchObject({ isSame: false, sameTokens: 5 });
  },
);

const calling = (id: string) => ({
  ...RESULT,
  tool_calls: [{ id, type: "function" as const, function: { name: "look", arguments: "{}" } }],
});

test("random IDs of tool calls are ignored", () => {
  expect(compareResults(calling("1"), calling("2")).isSame).toBe(true);
});

test("log-probabilities and alternatives are compared up to the first differing token", () => {
  const [first, ...others] = RESULT.tokens;
  const moved = { ...first!, top: [first!.top[0]!, { ...first!.top[1]!, logprob: -3.25 }] };
  expect(compareResults(RESULT, { ...RESULT, tokens: [moved, ...others] })).toMatchObject({
    isSame: true,
    logprobDifference: 0.25,
  });
  const after = [...RESULT.tokens.slice(0, 4), token(8, "!", -9)];
  expect(compareResults(RESULT, { ...RESULT, tokens: after }).logprobDifference).toBe(0);
});
