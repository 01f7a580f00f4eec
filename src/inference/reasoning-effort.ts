import type { GenerationInput, GenerationRequest } from "../engine/protocol/generation.ts";
import type { Model } from "../models/model.ts";
import type { InferenceRequest } from "./inference.ts";
import { traitsOf } from "./chat-template.ts";

/**
 * Most tokens of reasoning by effort; efforts above "high" are limited only by the answer. Models on a CPU generate 5
 * to 20 tokens per second, so these take from half a minute to half an hour.
 */
const EFFORT_BUDGETS: Readonly<Record<string, number>> = {
  minimal: 256,
  low: 1024,
  medium: 4096,
  high: 16_384,
};

/** Share of an answer's token limit for reasoning by effort; the rest is left for the text. */
const REASONING_SHARE = 0.8;

/** Template variable by which some chat templates tell the model how much to think. */
const EFFORT_VARIABLE = "reasoning_effort";

interface ReasoningLimits {
  /** Reasoning tokens in the request, which take precedence over its effort. */
  readonly requestedBudget: number | undefined;
  /** Most tokens of the answer, reasoning included. */
  readonly maxTokens: number | undefined;
}

/** Resolves the reasoning budget of a chat with thinking; empty: unlimited. */
export function resolveReasoning(
  input: GenerationInput,
  { settings, gguf }: Pick<Model, "settings" | "gguf">,
  { requestedBudget, maxTokens }: ReasoningLimits,
): Pick<GenerationRequest, "reasoning"> {
  if (input.kind !== "chat" || !input.thinking) return {};
  const template = settings.template ?? gguf.chatTemplate;
  const budget =
    requestedBudget ?? budgetOfEffort(input.templateVariables?.[EFFORT_VARIABLE], template, maxTokens);
  if (budget === undefined) return {};
  const { reasoningStart = "", reasoningEnd } = traitsOf(template);
  const { start = reasoningStart, end = reasoningEnd } = settings.thinking ?? {};
  return { reasoning: { budget, ...(end !== undefined && { tags: { start, end } }) } };
}

/** True if an effort or a budget asks for reasoning. */
export function requestsThinking(
  variables: Readonly<Record<string, unknown>> | undefined,
  budget: number | undefined,
): boolean {
  return variables?.[EFFORT_VARIABLE] !== undefined || (budget ?? 0) > 0;
}

/** Returns a warning if a request has an effort or a budget and the model cannot reason. */
export function ignoredThinking(
  { input, reasoningBudget }: Pick<InferenceRequest, "input" | "reasoningBudget">,
  { alias, capabilities, settings, gguf }: Model,
): readonly string[] {
  if ((input.kind !== "chat" && input.kind !== "instruct") || capabilities.thinking) return [];
  if (!requestsThinking(input.templateVariables, reasoningBudget)) return [];
  if ((settings.template ?? gguf.chatTemplate)?.includes(EFFORT_VARIABLE)) return [];
  return [`"${alias}" does not support thinking, so it answers without`];
}

function budgetOfEffort(
  effort: unknown,
  template: string | undefined,
  maxTokens: number | undefined,
): number | undefined {
  if (typeof effort !== "string" || template?.includes(EFFORT_VARIABLE)) return undefined;
  const budget = Object.hasOwn(EFFORT_BUDGETS, effort) ? EFFORT_BUDGETS[effort] : undefined;
  if (budget === undefined || maxTokens === undefined) return budget;
  return Math.min(budget, Math.floor(maxTokens * REASONING_SHARE));
}
