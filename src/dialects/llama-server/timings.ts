import { z } from "zod";
import type { Timings, Usage } from "../../engine/protocol/generation.ts";

export const timingsSchema = z
  .object({
    cache_n: z.int().describe("Tokens of the prompt that were in the KV cache."),
    prompt_n: z.int().describe("Tokens of the prompt that were computed."),
    prompt_ms: z.number(),
    prompt_per_token_ms: z.number(),
    prompt_per_second: z.number(),
    predicted_n: z.int().describe("Tokens generated."),
    predicted_ms: z.number(),
    predicted_per_token_ms: z.number(),
    predicted_per_second: z.number(),
  })
  .meta({ id: "LlamaServerTimings" });

export function answerTimings(
  { promptTokens, cachedTokens, completionTokens }: Usage,
  { promptMs, completionMs }: Timings,
): z.output<typeof timingsSchema> {
  const computed = Math.max(0, promptTokens - cachedTokens);
  return {
    cache_n: cachedTokens,
    prompt_n: computed,
    prompt_ms: promptMs,
    prompt_per_token_ms: ratio(promptMs, computed),
    prompt_per_second: ratio(1000 * computed, promptMs),
    predicted_n: completionTokens,
    predicted_ms: completionMs,
    predicted_per_token_ms: ratio(completionMs, completionTokens),
    predicted_per_second: ratio(1000 * completionTokens, completionMs),
  };
}

/** JSON knows no infinite numbers. */
function ratio(dividend: number, divisor: number): number {
  return divisor > 0 ? dividend / divisor : 0;
}
