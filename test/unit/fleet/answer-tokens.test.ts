import { expect, test } from "vitest";
import { MOST_GIVEN_TOKENS } from "../../../src/engine/protocol/generation.ts";
import { AnswerTokens } from "../../../src/fleet/answer-tokens.ts";

const told = (...ids: number[]) => ({ ids, replaced: 0 });

test("an answer of which no token is known is begun again", () => {
  expect(new AnswerTokens().begun.given).toBeUndefined();
});

test("the next machine goes on from all that any has told, also when the one before has not told them all again", () => {
  const tokens = new AnswerTokens();
  tokens.take(told(1, 2));
  tokens.take(told(3));
  tokens.rewind();
  tokens.take(told(1, 2));
  expect(tokens.begun.given).toEqual([1, 2, 3]);
  tokens.take(told(3, 4));
  expect(tokens.begun.given).toEqual([1, 2, 3, 4]);
});

test("a machine that has begun again and says something else is gone on with", () => {
  const tokens = new AnswerTokens();
  tokens.take(told(1, 2, 3));
  tokens.rewind();
  tokens.take(told(1, 7));
  expect(tokens.begun.given).toEqual([1, 7]);
});

test("tokens are counted that others would have been in place of", () => {
  const tokens = new AnswerTokens();
  tokens.take(told(1, 2));
  tokens.rewind();
  tokens.take({ ids: [1, 2], replaced: 2 });
  expect(tokens.replaced).toBe(2);
});

test("a machine that tells tokens without end takes no memory for them, and nobody goes on from them", () => {
  const tokens = new AnswerTokens();
  const many = told(...Array.from({ length: 65_536 }, () => 1));
  for (let count = 0; count < MOST_GIVEN_TOKENS; count += 65_536) tokens.take(many);
  expect(tokens.begun.given).toHaveLength(MOST_GIVEN_TOKENS);
  tokens.take(many);
  expect(tokens.begun.given).toBeUndefined();
});

test("the tokens of an answer that did not fit are forgotten when the next one begins", () => {
  const tokens = new AnswerTokens();
  tokens.take({ ids: [1, 2], replaced: 1, failedTries: 0 });
  expect(tokens.begun).toMatchObject({ given: [1, 2], failedTries: 0 });
  tokens.take({ ids: [7], replaced: 0, failedTries: 1 });
  expect(tokens.begun).toMatchObject({ given: [7], failedTries: 1 });
  expect(tokens.replaced).toBe(0);
  tokens.rewind();
  tokens.take({ ids: [7, 8], replaced: 0, failedTries: 1 });
  expect(tokens.begun).toMatchObject({ given: [7, 8], failedTries: 1 });
});
