import { z } from "zod";
import type { Usage } from "../../engine/protocol/generation.ts";

export const usageSchema = z
  .object({
    prompt_tokens: z.int(),
    completion_tokens: z.int(),
    total_tokens: z.int(),
    prompt_tokens_details: z.object({
      cached_tokens: z.int().describe("Found in the cache of earlier prompts."),
    }),
    completion_tokens_details: z.object({ reasoning_tokens: z.int() }),
  })
  .meta({ id: "CompletionUsage" });

/** The counts of all choices; the prompt is counted once for each distinct one, as the API does. */
export function toUsage(usages: readonly Usage[], prompts = 1): z.output<typeof usageSchema> {
  const choicesPerPrompt = Math.max(1, usages.length / prompts);
  const firstOfPrompt = usages.filter((_, choice) => choice % choicesPerPrompt === 0);
  const promptTokens = sum(firstOfPrompt, ({ promptTokens: tokens }) => tokens);
  const completionTokens = sum(usages, ({ completionTokens: tokens }) => tokens);
  return {
    prompt_tokens: promptTokens,
    completion_tokens: completionTokens,
    total_tokens: promptTokens + completionTokens,
    prompt_tokens_details: { cached_tokens: sum(firstOfPrompt, ({ cachedTokens }) => cachedTokens) },
    completion_tokens_details: { reasoning_tokens: sum(usages, ({ reasoningTokens }) => reasoningTokens) },
  };
}

function sum<Item>(items: readonly Item[], count: (item: Item) => number): number {
  return items.reduce((total, item) => total + count(item), 0);
}
