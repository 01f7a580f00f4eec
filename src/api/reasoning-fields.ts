import { z } from "zod";
import { dictionary } from "../http/input/bounded-lists.ts";
import { refused } from "../http/input/common-fields.ts";

/** More tokens than any context has. */
const MAX_TOKENS = 16 * 1024 * 1024;

const budget = z.int().min(-1).max(MAX_TOKENS).nullish();

/** How long a model may think, as llama.cpp's server and vLLM call it, in every API with thinking. */
export const thinkingFields = {
  thinking_budget_tokens: budget.describe(
    "Most tokens of thinking; then the model has to answer. More than 0 enables thinking on models that support it; -1: no limit.",
  ),
  thinking_token_budget: budget.describe("Another name of thinking_budget_tokens."),
  reasoning_budget_tokens: budget.describe("Another name of thinking_budget_tokens."),
};

/** The same, in APIs that continue texts, where thinking is part of the answer. */
export const noThinkingFields = {
  thinking_budget_tokens: refused("limit thinking and answer together with max_tokens", -1),
  thinking_token_budget: refused("limit thinking and answer together with max_tokens"),
  reasoning_budget_tokens: refused("limit thinking and answer together with max_tokens", -1),
};

/** Whether a model thinks, and how much, as Ollama takes it. */
export const thinkSchema = z.union([z.boolean(), z.enum(["low", "medium", "high", "max"])]).nullish();

/** A level is for chat templates that read reasoning_effort; for others it limits the tokens of thinking. */
export function toThink(think: z.output<typeof thinkSchema>): {
  thinking?: boolean;
  templateVariables?: Record<string, unknown>;
} {
  if (think == null) return {};
  return typeof think === "string"
    ? { thinking: true, templateVariables: { reasoning_effort: think } }
    : { thinking: think };
}

const thinkingObject = z.object(thinkingFields);

/** Most tokens of thinking that a request asks for. */
export function toReasoningBudget(body: Partial<z.output<typeof thinkingObject>>): {
  reasoningBudget?: number;
} {
  const asked =
    body.thinking_budget_tokens ?? body.thinking_token_budget ?? body.reasoning_budget_tokens ?? -1;
  return asked < 0 ? {} : { reasoningBudget: asked };
}

/** The efforts that clients send; each template supports some of them. */
export const reasoningEffortSchema = z.enum(["none", "minimal", "low", "medium", "high", "xhigh", "max"]);

/** What tells the chat template whether a model thinks, and how much. */
export const templateThinkingFields = {
  reasoning_effort: reasoningEffortSchema
    .nullish()
    .describe(
      "Enables thinking on models that support it. Passed to the chat template, or for one without levels a limit of thinking: minimal 256 tokens, low 1024, medium 4096, high 16384, at most four fifths of the answer's. Default: none.",
    ),
  chat_template_kwargs: dictionary(z.unknown())
    .nullish()
    .describe("More variables for the chat template, such as enable_thinking."),
  enable_thinking: z.boolean().nullish().describe("The same as in chat_template_kwargs, which comes first."),
};

const templateThinkingObject = z.object(templateThinkingFields);

/** Of a chat's fields. */
export function toTemplateThinking({
  reasoning_effort: effort,
  enable_thinking: thinking,
  chat_template_kwargs: variables,
}: z.output<typeof templateThinkingObject>): ReturnType<typeof toThinking> {
  return toThinking(effort, thinking == null ? variables : { enable_thinking: thinking, ...variables });
}

/** "none" disables thinking; any other effort enables it on models that support it, and is passed to the template. */
export function toThinking(
  effort: z.output<typeof reasoningEffortSchema> | null | undefined,
  variables?: Readonly<Record<string, unknown>> | null,
): { thinking?: boolean; templateVariables?: Record<string, unknown> } {
  const enable = variables?.["enable_thinking"];
  const thinking = effort === "none" ? false : typeof enable === "boolean" ? enable : undefined;
  const merged = { ...variables, ...(effort != null && effort !== "none" && { reasoning_effort: effort }) };
  return {
    ...(thinking !== undefined && { thinking }),
    ...(Object.keys(merged).length > 0 && { templateVariables: merged }),
  };
}
