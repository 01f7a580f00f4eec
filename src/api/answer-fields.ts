import type { z } from "zod";
import { mapInTimeSlices } from "../async/timers.ts";
import type { GenerationEvent, Timings, TokenLogprob, Usage } from "../engine/protocol/generation.ts";
import type { InferenceEvent } from "../inference/inference.ts";
import type { promptProgressSchema, timingsSchema, TokenLogprobs } from "./wire/answer-fields.ts";

export function toPromptProgress({
  total,
  cached,
  processed,
  elapsedMs,
}: Extract<GenerationEvent, { type: "prompt-progress" }>): z.output<typeof promptProgressSchema> {
  return { total, cache: cached ?? 0, processed, time_ms: Math.round(elapsedMs ?? 0) };
}

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

export function toTokenLogprobs(logprobs: readonly TokenLogprob[]): TokenLogprobs {
  return logprobs.map(({ top, ...token }) => ({ ...withoutId(token), top_logprobs: top.map(withoutId) }));
}

function withoutId({
  token,
  logprob,
  bytes,
}: Omit<TokenLogprob, "top">): Omit<TokenLogprobs[number], "top_logprobs"> {
  return { token, logprob, bytes };
}

/** @param prefix such as "resp" or "msg" */
export function newId(prefix: string): string {
  return `${prefix}_${crypto.randomUUID().replaceAll("-", "")}`;
}

/** Number of vectors that keeps a time slice short, so that other requests are not delayed. */
const VECTORS_PER_SLICE = 64;

/** Converts embedding vectors, which can be thousands, in time slices. */
export async function mapVectors<Result>(
  vectors: number[][],
  convert: (vector: number[], index: number) => Result,
): Promise<Result[]> {
  return await mapInTimeSlices(vectors, VECTORS_PER_SLICE, convert);
}

/** Ranks documents by their scores, best first; equal ones in their order. */
export function rank(scores: readonly number[], limit = scores.length): { index: number; score: number }[] {
  return scores
    .map((score, index) => ({ index, score }))
    .toSorted((one, other) => other.score - one.score || one.index - other.index)
    .slice(0, limit);
}
