import { describe, expect, test } from "vitest";
import type { GenerationInput } from "../../../src/engine/protocol/generation.ts";
import { resolveReasoning } from "../../../src/inference/reasoning-effort.ts";
import { NO_SETTINGS } from "../../../src/models/model.ts";
import { fakeModel } from "../../support/fake-models.ts";

function chat(effort?: string, thinking = true): GenerationInput {
  return {
    kind: "chat",
    messages: [{ role: "user", content: [{ type: "text", text: "hi" }] }],
    tools: [],
    toolChoice: "auto",
    parallelToolCalls: true,
    thinking,
    ...(effort !== undefined && { templateVariables: { reasoning_effort: effort } }),
  };
}

function model(template: string, thinking?: { start: string; end: string }) {
  const settings = { ...NO_SETTINGS, template, thinking: thinking && { ...thinking, enabled: true } };
  return fakeModel({ settings });
}

const PLAIN = model("{{ messages }}");
const NOTHING = { requestedBudget: undefined, maxTokens: undefined };

describe("the budget of reasoning", () => {
  test.for([
    ["minimal", 256],
    ["low", 1024],
    ["medium", 4096],
    ["high", 16_384],
  ] as const)("of the effort %s is %d tokens", ([effort, budget]) => {
    expect(resolveReasoning(chat(effort), PLAIN, NOTHING)).toEqual({ reasoning: { budget } });
  });

  test("leaves a fifth of the token limit for the text", () => {
    const limited = { requestedBudget: undefined, maxTokens: 1000 };
    expect(resolveReasoning(chat("high"), PLAIN, limited)).toEqual({ reasoning: { budget: 800 } });
    expect(resolveReasoning(chat("minimal"), PLAIN, limited)).toEqual({ reasoning: { budget: 256 } });
  });

  test("of the request takes precedence over its effort", () => {
    const asked = { requestedBudget: 7, maxTokens: 5 };
    expect(resolveReasoning(chat("low"), PLAIN, asked)).toEqual({ reasoning: { budget: 7 } });
    expect(resolveReasoning(chat(), PLAIN, { requestedBudget: 0, maxTokens: 5 })).toEqual({
      reasoning: { budget: 0 },
    });
  });

  test.for([
    ["there is no effort", chat(), PLAIN],
    ["the effort has no limit", chat("max"), PLAIN],
    ["nobody knows the effort", chat("constructor"), PLAIN],
    ["the template knows efforts", chat("low"), model("{{ reasoning_effort }}")],
    ["the model does not think", chat("low", false), PLAIN],
    ["the prompt is raw", { kind: "prompt", prompt: "hi" }, PLAIN],
  ] as const)("is unlimited if %s", ([, input, of]) => {
    expect(resolveReasoning(input, of, NOTHING)).toEqual({});
  });

  test("has the tags of the Modelfile, or of a family whose reasoning llama.cpp does not parse", () => {
    const tags = { start: "<r>", end: "</r>" };
    expect(resolveReasoning(chat("low"), model("x", tags), NOTHING).reasoning).toEqual({
      budget: 1024,
      tags,
    });
    expect(resolveReasoning(chat("low"), model("<｜Assistant｜></think>"), NOTHING).reasoning).toEqual({
      budget: 1024,
      tags: { start: "<think>", end: "</think>" },
    });
  });
});
