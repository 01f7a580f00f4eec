import { expect, test } from "vitest";
import { toListedName, toModelName } from "../../../../src/api/ollama/model-entry.ts";

test.for([
  ["qwen3:0.6b", "qwen3:0.6b"],
  ["library/qwen3", "qwen3"],
  ["registry.ollama.ai/library/qwen3:0.6b", "qwen3:0.6b"],
  ["hf.co/owner/repo", "hf:owner/repo"],
  ["hf.co/owner/repo:latest", "hf:owner/repo"],
  ["huggingface.co/owner/repo:Q4_K_M", "hf:owner/repo:Q4_K_M"],
  ["hf:owner/repo", "hf:owner/repo"],
] as const)("%s is the model %s", ([name, expected]) => {
  expect(toModelName(name)).toBe(expected);
});

test("every listed name has a tag and refers to its model", () => {
  expect(toListedName("mini")).toBe("mini:latest");
  expect(toListedName("qwen3:0.6b")).toBe("qwen3:0.6b");
});
