import { expect, test } from "vitest";
import { checkSpecialTokens, checkRequestSpecialTokens } from "../../../../src/engine/core/tokenizer.ts";
import { chatRequest } from "../../../support/engine-fixture.ts";

const TOO_MANY = 80_000;

test.each(["<tool_call>", "<s>", "</s>", "<|im_end|>", "[INST]", "<|a b|>"])(
  "rejects a text with 80,000 times %s before it is tokenized",
  (mark) => {
    expect(() => checkSpecialTokens(mark.repeat(TOO_MANY))).toThrow(/tags such as/);
  },
);

test("counts possible special tokens in all messages together", () => {
  const content = Array.from({ length: 100 }, () => ({ type: "text" as const, text: "<s>".repeat(800) }));
  expect(() => checkRequestSpecialTokens(chatRequest(content))).toThrow(/tags such as/);
});

test.each([
  ["1 MB of prose", "What is it, then? ".repeat(60_000)],
  ["a long HTML page", "<tr><td>1</td></tr>\n".repeat(5000)],
  ["opening brackets that are never closed", "<[".repeat(500_000)],
])("accepts quickly: %s", (_, text) => {
  const startedAt = performance.now();
  expect(() => checkSpecialTokens(text)).not.toThrow();
  // A search that restarts at each bracket would take minutes.
  expect(performance.now() - startedAt).toBeLessThan(10_000);
});
