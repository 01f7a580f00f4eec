import { z } from "zod";
import { dictionary } from "../http/input/bounded-lists.ts";
import { refused } from "../http/input/common-fields.ts";

/** Upper bound for validation: more tokens than any context has. */
const MAX_THINKING_TOKENS = 16 * 1024 * 1024;

const budget = z.int().min(-1).max(MAX_THINKING_TOKENS).nullish();

/** Limit of thinking, under the names of llama.cpp's server and vLLM. For every API with thinking. */
export const thinkingFields = {
  thinking_budget_tokens: budget.describe(
    "Maximum number of thinking tokens; then the model must answer. A value above 0 enables thinking on models that support it; -1: no limit.",
  ),
  thinking_token_budget: budget.describe("Another name of thinking_budget_tokens."),
  reasoning_budget_tokens: budget.describe("Another name of thinking_budget_tokens."),
};

/** The same fields for APIs that continue a text, where thinking is not separate from the answer. */
export const noThinkingFields = {
  thinking_budget_tokens: refused("limit thinking and answer together with max_tokens", -1),
  thinking_token_budget: refused("limit thinking and answer together with max_tokens"),
  reasoning_budget_tokens: refused("limit thinking and answer together with max_tokens", -1),
};

/** Ollama's `think` field: enables thinking, or sets its level. */
export const thinkSchema = z.union([z.boolean(), z.enum(["low", "medium", "high", "max"])]).nullish();

/**
 * Converts Ollama's `think`. A level becomes reasoning_effort; for templates without it, a limit of thinking tokens.
 */
export function thinkingFromLevel(think: z.output<typeof thinkSchema>): {
  thinking?: boolean;
  templateVariables?: Record<string, unknown>;
} {
  if (think == null) return {};
  return typeof think === "string"
    ? { thinking: true, templateVariables: { reasoning_effort: think } }
    : { thinking: think };
}

const thinkingObject = z.object(thinkingFields);

/** Requested limit of thinking tokens. */
export function toReasoningBudget(body: Partial<z.output<typeof thinkingObject>>): {
  reasoningBudget?: number;
} {
  const requested =
    body.thinking_budget_tokens ?? body.thinking_token_budget ?? body.reasoning_budget_tokens ?? -1;
  return requested < 0 ? {} : { reasoningBudget: requested };
}

/** Efforts that clients send; each chat template supports some of them. */
export const reasoningEffortSchema = z.enum(["none", "minimal", "low", "medium", "high", "xhigh", "max"]);

/** Fields for the chat template that enable thinking and set its effort. */
export const templateThinkingFields = {
  reasoning_effort: reasoningEffortSchema
    .nullish()
    .describe(
      "Enables thinking on models that support it. Passed to the chat template; for a template without levels, it limits thinking to 256 tokens (minimal), 1024 (low), 4096 (medium) or 16384 (high), and to four fifths of the maximum answer. Default: none.",
    ),
  chat_template_kwargs: dictionary(z.unknown())
    .nullish()
    .describe("More variables for the chat template, such as enable_thinking."),
  enable_thinking: z.boolean().nullish().describe("Same as in chat_template_kwargs, which takes precedence."),
};

const templateThinkingObject = z.object(templateThinkingFields);

/** Converts {@link templateThinkingFields}. */
export function thinkingFromTemplateFields({
  reasoning_effort: effort,
  enable_thinking: thinking,
  chat_template_kwargs: variables,
}: z.output<typeof templateThinkingObject>): ReturnType<typeof thinkingFromEffort> {
  return thinkingFromEffort(
    effort,
    thinking == null ? variables : { enable_thinking: thinking, ...variables },
  );
}

/**
 * Converts an effort: "none" disables thinking; any other enables it where supported, and is passed to the template.
 */
export function thinkingFromEffort(
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
