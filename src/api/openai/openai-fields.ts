import { z } from "zod";
import type { Usage } from "../../engine/protocol/generation.ts";
import { ServiceError } from "../../errors/service-error.ts";
import { list, MAX_STOPS } from "../../http/input/bounded-lists.ts";
import { ignored, repetitionGuardField, modelField, optional } from "../../http/input/common-fields.ts";
import { sseData } from "../../http/streaming/stream-response.ts";
import type { Answer } from "../../inference/collect-answer.ts";
import { answerTimings } from "../answer-fields.ts";
import {
  promptProgressSchema,
  returnProgressField,
  timingsPerTokenField,
  timingsSchema,
} from "../wire/answer-fields.ts";
import {
  choiceCount,
  engineFields,
  MAX_CHOICES,
  samplingFields,
  unsupportedFields,
} from "../wire/generation-fields.ts";

/** Fields common to chat and text completions. Null means the same as absent. */
export const commonFields = {
  model: modelField,
  ...samplingFields,
  ...engineFields,
  timings_per_token: timingsPerTokenField,
  ...unsupportedFields,
  stop: optional(
    z.union([z.string(), list(z.string(), { max: MAX_STOPS })]),
    "Stop sequence, or several; not included in the answer. Empty strings are ignored.",
  ),
  n: optional(
    choiceCount,
    `Number of choices, at most ${MAX_CHOICES}; choices wait for free slots. Default: 1.`,
  ),
  n_cmpl: optional(choiceCount, "llama.cpp's name of n."),
  stream: optional(z.boolean(), "Stream the answer as server-sent events. Default: false."),
  stream_options: optional(
    z.object({ include_usage: z.boolean().nullish() }),
    "include_usage: send the token counts at the end of the stream.",
  ),
  return_progress: returnProgressField,
  repetition_guard: repetitionGuardField,
  user: ignored(),
};

/** Token limit. Some clients send -1 for "no limit". */
export const tokenLimit = z.union([z.int().min(1), z.literal(-1)]).nullish();

export function toMaxTokens(limit: z.output<typeof tokenLimit>): number | undefined {
  return limit == null || limit === -1 ? undefined : limit;
}

const commonSchema = z.object(commonFields);
type CommonFields = z.output<typeof commonSchema>;

export function toStreamOptions(body: CommonFields): StreamOptions {
  return {
    includeUsage: body.stream_options?.include_usage ?? false,
    returnProgress: body.return_progress ?? false,
    timingsPerToken: body.timings_per_token ?? false,
  };
}

export function unsupported(message: string, param: string): ServiceError {
  return new ServiceError("unsupported_feature", message, { param });
}

/** Fields that every chunk of an answer repeats. */
export interface AnswerHead {
  readonly id: string;
  /** Unix seconds. */
  readonly created: number;
  readonly model: string;
}

/** Additional content of a stream. */
export interface StreamOptions {
  readonly includeUsage: boolean;
  readonly returnProgress: boolean;
  readonly timingsPerToken: boolean;
}

/** Returns a function that writes a chunk of a stream; only with `includeUsage`, it has the usage. */
export function chunkWriter(
  object: string,
  { id, created, model }: AnswerHead,
  { includeUsage }: StreamOptions,
) {
  return (
    choices: readonly object[],
    more: object = {},
    usage: z.output<typeof usageSchema> | null = null,
  ): string => {
    const chunk = { id, object, created, model, choices, ...more };
    return sseData(includeUsage ? { ...chunk, usage } : chunk);
  };
}

/** Progress fields of a chunk. */
export const progressFields = {
  prompt_progress: promptProgressSchema.optional().describe("If the request has return_progress."),
  timings: timingsSchema
    .optional()
    .describe("With timings_per_token: timings up to this chunk; in the last chunk, of the whole choice."),
};

export const timingsField = timingsSchema
  .optional()
  .describe("With timings_per_token, if there is only one choice.");

/** Returns the timings of an answer with one choice. Choices that run concurrently have no common timings. */
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

/** Returns a page of a list, with its cursors. */
export function toList<Item extends { readonly id: string }>(data: Item[], hasMore: boolean) {
  return {
    object: "list" as const,
    data,
    first_id: data[0]?.id ?? null,
    last_id: data.at(-1)?.id ?? null,
    has_more: hasMore,
  };
}

const CALL_PREFIX = "call_";

/** Adds this API's prefix to the ID of a tool call, because the engine's IDs lack it. */
export function toCallId(id: string): string {
  return id.startsWith(CALL_PREFIX) ? id : CALL_PREFIX + id;
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
        .describe("Accepted draft tokens of speculative decoding; absent: no draft tokens."),
      rejected_prediction_tokens: z
        .int()
        .optional()
        .describe(
          "Rejected draft tokens, which are not part of the answer and not counted in completion_tokens.",
        ),
    }),
  })
  .meta({ id: "CompletionUsage" });

/** Sums the usage of all choices. Like OpenAI, counts each prompt once, regardless of the number of choices. */
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
