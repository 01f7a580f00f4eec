import type { GenerationInput, GenerationRequest } from "../engine/protocol/generation.ts";
import type { Model } from "../models/model.ts";
import type { InferenceRequest } from "./inference.ts";
import { traitsOf } from "./chat-template.ts";

/**
 * Tokens of reasoning by effort; those above "high" have no limit but the answer's own. Models on a CPU think 5 to 20 tokens
 * a second, so that these are from half a minute to half an hour.
 */
const BUDGETS: Readonly<Record<string, number>> = { minimal: 256, low: 1024, medium: 4096, high: 16_384 };

/** Of an answer's limit, for the reasoning of an effort: the rest is left for the answer itself. */
const SHARE = 0.8;

/** Templates that read this variable tell the model how much to think. */
const LEVEL_VARIABLE = "reasoning_effort";

interface ReasoningWishes {
  /** Tokens that the request asks for, which win over its effort. */
  readonly asked: number | undefined;
  /** Most tokens of the answer, reasoning included. */
  readonly maxTokens: number | undefined;
}

/** How long a chat that thinks may do so before it has to answer; empty: as long as it likes. */
export function resolveReasoning(
  input: GenerationInput,
  { settings, gguf }: Pick<Model, "settings" | "gguf">,
  { asked, maxTokens }: ReasoningWishes,
): Pick<GenerationRequest, "reasoning"> {
  if (input.kind !== "chat" || !input.thinking) return {};
  const template = settings.template ?? gguf.chatTemplate;
  const budget = asked ?? budgetOfEffort(input.templateVariables?.[LEVEL_VARIABLE], template, maxTokens);
  if (budget === undefined) return {};
  const { reasoningStart = "", reasoningEnd } = traitsOf(template);
  const { start = reasoningStart, end = reasoningEnd } = settings.thinking ?? {};
  return { reasoning: { budget, ...(end !== undefined && { tags: { start, end } }) } };
}

/** Whether an effort or a budget asks for reasoning. */
export function requestsThinking(
  variables: Readonly<Record<string, unknown>> | undefined,
  budget: number | undefined,
): boolean {
  return variables?.[LEVEL_VARIABLE] !== undefined || (budget ?? 0) > 0;
}

/** What to tell whose effort or budget a model without reasoning cannot follow. */
export function ignoredThinking(
  { input, reasoningBudget }: Pick<InferenceRequest, "input" | "reasoningBudget">,
  { alias, capabilities, settings, gguf }: Model,
): readonly string[] {
  if ((input.kind !== "chat" && input.kind !== "instruct") || capabilities.thinking) return [];
  if (!requestsThinking(input.templateVariables, reasoningBudget)) return [];
  if ((settings.template ?? gguf.chatTemplate)?.includes(LEVEL_VARIABLE)) return [];
  return [`"${alias}" does not support thinking, so it answers without`];
}

function budgetOfEffort(
  effort: unknown,
  template: string | undefined,
  maxTokens: number | undefined,
): number | undefined {
  if (typeof effort !== "string" || template?.includes(LEVEL_VARIABLE)) return undefined;
  const budget = Object.hasOwn(BUDGETS, effort) ? BUDGETS[effort] : undefined;
  if (budget === undefined || maxTokens === undefined) return budget;
  return Math.min(budget, Math.floor(maxTokens * SHARE));
}
