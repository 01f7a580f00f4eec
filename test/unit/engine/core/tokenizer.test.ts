import { expect, test } from "vitest";
import { checkSpecialTokens, checkSpecialTokensOf } from "../../../../src/engine/core/tokenizer.ts";
import { chatRequest } from "../../../support/engine-fixture.ts";

const TOO_MANY = 80_000;

test.each(["<tool_call>", "<s>", "</s>", "<|im_end|>", "[INST]", "<|a b|>"])(
  "a text with eighty thousand of %s is refused before an engine looks at it",
  (mark) => {
    expect(() => checkSpecialTokens(mark.repeat(TOO_MANY))).toThrow(/tags such as/);
  },
);

test("they count in all messages together", () => {
  const content = Array.from({ length: 100 }, () => ({ type: "text" as const, text: "<s>".repeat(800) }));
  expect(() => checkSpecialTokensOf(chatRequest(content))).toThrow(/tags such as/);
});

test.each([
  ["prose of a megabyte", "What is it, then? ".repeat(60_000)],
  ["a long page of HTML", "<tr><td>1</td></tr>\n".repeat(5000)],
  ["signs that open and never close", "<[".repeat(500_000)],
])("%s is taken, quickly", (_, text) => {
  const startedAt = performance.now();
  expect(() => checkSpecialTokens(text)).not.toThrow();
  // Milliseconds; one that searches anew from each sign takes minutes.
  expect(performance.now() - startedAt).toBeLessThan(10_000);
});
