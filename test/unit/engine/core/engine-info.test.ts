import { expect, test } from "vitest";
import { mustDisableReasoning } from "../../../../src/engine/core/engine-info.ts";

test.each([
  [
    "false for a template that ends its prompt with empty reasoning",
    "{% if add_generation_prompt %}<a><think></think>",
    false,
  ],
  [
    "false for a template that begins reasoning in its prompt",
    "{% if add_generation_prompt %}<a><think>\n",
    false,
  ],
  [
    "false for a template with channels",
    "<|channel|>final {% if add_generation_prompt %}<|start|>assistant",
    false,
  ],
  [
    "true for a template that lets the model begin reasoning",
    "<think>{% if add_generation_prompt %}<|im_start|>assistant",
    true,
  ],
  ["true for a template without reasoning", "{% if add_generation_prompt %}assistant:", true],
])("mustDisableReasoning() is %s", (_, template, expected) => {
  expect(mustDisableReasoning(template)).toBe(expected);
});
