import { expect, test } from "vitest";
import { canReasonUnasked } from "../../../../src/engine/core/engine-info.ts";

test.each([
  ["ends its prompt with empty reasoning", "{% if add_generation_prompt %}<a><think></think>", false],
  ["begins reasoning in its prompt", "{% if add_generation_prompt %}<a><think>\n", false],
  ["has channels", "<|channel|>final {% if add_generation_prompt %}<|start|>assistant", false],
  ["leaves it to the model", "<think>{% if add_generation_prompt %}<|im_start|>assistant", true],
  ["has no reasoning", "{% if add_generation_prompt %}assistant:", true],
])("a template that %s", (_, template, expected) => {
  expect(canReasonUnasked(template)).toBe(expected);
});
