import { z } from "zod";
import type { GenerationEvent, Timings, Usage } from "../engine/protocol/generation.ts";
import type { InferenceEvent } from "../inference/inference.ts";

/** Field of llama.cpp's server, accepted in every API that can report progress. */
export const returnProgressField = z
  .boolean()
  .nullish()
  .describe("With stream: report how much of the prompt has been processed. Default: false.");

export const promptProgressSchema = z
  .object({
    total: z.int().describe("Tokens in the prompt."),
    cache: z.int().describe("Prompt tokens that were already in the KV cache."),
    processed: z.int().describe("Prompt tokens in the KV cache so far."),
    time_ms: z.int().describe("Milliseconds since the engine started on the prompt."),
  })
  .meta({ id: "PromptProgress" });

export function toPromptProgress({
  total,
  cached,
  processed,
  elapsedMs,
}: Extract<GenerationEvent, { type: "prompt-progress" }>): z.output<typeof promptProgressSchema> {
  return { total, cache: cached ?? 0, processed, time_ms: Math.round(elapsedMs ?? 0) };
}

/** Field of llama.cpp's server, accepted in every API that can report timings. */
export const timingsPerTokenField = z
  .boolean()
  .nullish()
  .describe("Report token counts and timings, in a stream with each chunk. Default: false.");

export const timingsSchema = z
  .object({
    cache_n: z.int().describe("Prompt tokens reused from the KV cache."),
    prompt_n: z.int().describe("Prompt tokens processed."),
    prompt_ms: z.number(),
    prompt_per_token_ms: z.number(),
    prompt_per_second: z.number(),
    predicted_n: z.int().describe("Tokens generated."),
    predicted_ms: z.number(),
    predicted_per_token_ms: z.number(),
    predicted_per_second: z.number(),
    draft_n: z.int().optional().describe("Draft tokens of speculative decoding; absent: none."),
    draft_n_accepted: z.int().optional().describe("Draft tokens that were accepted."),
  })
  .meta({ id: "LlamaServerTimings" });

/** Timings of the answer up to an event, if the engine reported them; of the whole answer for its last event. */
export function eventTimings(event: InferenceEvent): z.output<typeof timingsSchema> | undefined {
  if (event.type === "done") return answerTimings(event.usage, event.timings);
  return "soFar" in event && event.soFar ? answerTimings(event.soFar.usage, event.soFar.timings) : undefined;
}

export function answerTimings(
  { promptTokens, cachedTokens, completionTokens, guesses }: Usage,
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
    ...(guesses && { draft_n: guesses.tokens, draft_n_accepted: guesses.kept }),
  };
}

/** Returns 0 for a division by 0, because JSON has no infinite numbers. */
function ratio(dividend: number, divisor: number): number {
  return divisor > 0 ? dividend / divisor : 0;
}
