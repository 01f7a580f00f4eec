import { z } from "zod";
import type { GenerationEvent, Timings, Usage } from "../engine/protocol/generation.ts";
import type { InferenceEvent } from "../inference/inference.ts";

/** As in llama.cpp's server, in every API that can report it. */
export const returnProgressField = z
  .boolean()
  .nullish()
  .describe("With stream: report how much of the prompt has been processed. Default: false.");

export const promptProgressSchema = z
  .object({
    total: z.int().describe("Tokens of the prompt."),
    cache: z.int().describe("Of these, the tokens that were in the KV cache already."),
    processed: z.int().describe("Tokens of the prompt that are in the KV cache by now."),
    time_ms: z.int().describe("Milliseconds since the engine began with it."),
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

/** As in llama.cpp's server, in every API that can report it. */
export const timingsPerTokenField = z
  .boolean()
  .nullish()
  .describe("Report tokens and times: of a stream so far, with each piece of the answer. Default: false.");

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
    draft_n: z.int().optional().describe("Tokens that were guessed in advance; absent: none were."),
    draft_n_accepted: z.int().optional().describe("Of these, the ones that were right."),
  })
  .meta({ id: "LlamaServerTimings" });

/** Those of a piece up to there, if the engine has told them, or of the whole answer at its end. */
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

/** JSON knows no infinite numbers. */
function ratio(dividend: number, divisor: number): number {
  return divisor > 0 ? dividend / divisor : 0;
}
