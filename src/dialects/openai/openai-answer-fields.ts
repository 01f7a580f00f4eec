import { z } from "zod";
import { promptProgressSchema } from "../prompt-progress.ts";
import { answerTimings, timingsSchema } from "../timings.ts";
import type { TokenLogprob, Usage } from "../../engine/protocol/generation.ts";
import type { Answer } from "../../inference/collect-answer.ts";

/** Fields that every chunk of an answer repeats. */
export interface AnswerHead {
  readonly id: string;
  /** Unix seconds. */
  readonly created: number;
  readonly model: string;
}

/** What a stream has besides the answer. */
export interface StreamOptions {
  readonly includeUsage: boolean;
  readonly returnProgress: boolean;
  readonly timingsPerToken: boolean;
}

/** How far a chunk is. */
export const progressFields = {
  prompt_progress: promptProgressSchema.optional().describe("If the request asks for it."),
  timings: timingsSchema
    .optional()
    .describe("With timings_per_token: up to this chunk, and of the whole choice in its last one."),
};

export const timingsField = timingsSchema
  .optional()
  .describe("With timings_per_token, of an answer with one choice.");

/** Times are those of a choice: several that overlap have none in common. */
export function timingFields(
  answers: readonly Answer[],
  { timingsPerToken }: Pick<StreamOptions, "timingsPerToken">,
): { timings?: z.output<typeof timingsSchema> } {
  const [only, ...others] = answers;
  if (!timingsPerToken || !only || others.length > 0) return {};
  return { timings: answerTimings(only.usage, only.timings) };
}

/** @param prefix "chatcmpl", "cmpl" or "rerank" */
export function answerHead(prefix: string, model: string): AnswerHead {
  return {
    id: `${prefix}-${crypto.randomUUID().replaceAll("-", "")}`,
    created: Math.floor(Date.now() / 1000),
    model,
  };
}

const CALL_PREFIX = "call_";

/** The ID of a tool call with the API's prefix, which the engine's IDs lack. */
export function toCallId(id: string): string {
  return id.startsWith(CALL_PREFIX) ? id : CALL_PREFIX + id;
}

const tokenSchema = z.object({ token: z.string(), logprob: z.number(), bytes: z.array(z.int()).nullable() });

/** Log probabilities of tokens, in the format that chat completions and responses share. */
export const tokenLogprobsSchema = z.array(tokenSchema.extend({ top_logprobs: z.array(tokenSchema) }));
export type TokenLogprobs = z.output<typeof tokenLogprobsSchema>;

export function toTokenLogprobs(logprobs: readonly TokenLogprob[]): TokenLogprobs {
  return logprobs.map(({ top, ...token }) => ({ ...withoutId(token), top_logprobs: top.map(withoutId) }));
}

function withoutId({ token, logprob, bytes }: Omit<TokenLogprob, "top">): z.output<typeof tokenSchema> {
  return { token, logprob, bytes };
}

export const usageSchema = z
  .object({
    prompt_tokens: z.int(),
    completion_tokens: z.int(),
    total_tokens: z.int(),
    prompt_tokens_details: z.object({
      cached_tokens: z.int().describe("Prompt tokens reused from the KV cache."),
    }),
    completion_tokens_details: z.object({
      reasoning_tokens: z.int(),
      accepted_prediction_tokens: z
        .int()
        .optional()
        .describe("Tokens that were guessed in advance and were right; absent: none were guessed."),
      rejected_prediction_tokens: z
        .int()
        .optional()
        .describe(
          "Those that were wrong. They are not part of the answer, and not counted in completion_tokens.",
        ),
    }),
  })
  .meta({ id: "CompletionUsage" });

/** Sums the usage of all choices; like the API, counts each prompt once however many choices it has. */
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
    completion_tokens_details: {
      reasoning_tokens: sum(usages, ({ reasoningTokens }) => reasoningTokens),
      ...predictionTokens(usages),
    },
  };
}

function predictionTokens(usages: readonly Usage[]) {
  const guesses = usages.flatMap(({ guesses: each }) => each ?? []);
  if (guesses.length === 0) return {};
  const kept = sum(guesses, (each) => each.kept);
  return {
    accepted_prediction_tokens: kept,
    rejected_prediction_tokens: sum(guesses, ({ tokens }) => tokens) - kept,
  };
}

function sum<Item>(items: readonly Item[], count: (item: Item) => number): number {
  return items.reduce((total, item) => total + count(item), 0);
}
