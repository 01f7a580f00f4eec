import { z } from "zod";
import { duration } from "../../config/config-values.ts";
import { MAX_NAME_LENGTH, modelName, optional } from "../../http/input/common-fields.ts";
import { optionsField } from "./ollama-options.ts";
import {
  type AnswerLimit,
  type FinishReason,
  jsonSchemaSchema,
  MAX_TOP_LOGPROBS,
  type OutputFormat,
  type Timings,
  type TokenLogprob,
  type Usage,
} from "../../engine/protocol/generation.ts";
import { limitField, tokenLogprobsSchema } from "../wire/answer-fields.ts";
import { limitFields, toTokenLogprobs } from "../answer-fields.ts";
import { thinkingFields } from "../wire/generation-fields.ts";

export const modelField = z
  .string({ error: "is required" })
  .min(1, { error: "is required" })
  .max(MAX_NAME_LENGTH)
  .describe(
    "Model name, or a hub repository such as hf.co/owner/repo:Q4_K_M. A name without a tag means `:latest`.",
  );
/** Older clients send `name` instead of `model`. */
export const nameField = optional(modelName, "Older name of model.");
export const streamField = optional(z.boolean(), "Stream the answer as lines of JSON. Default: true.");

/** Duration, parsed to milliseconds. */
export const keepAliveField = optional(
  duration,
  'Time that the model stays loaded after this request: "5m", "1h30m", seconds, 0 to unload it, negative for no limit. Default: as it was loaded; if this request loads it, models.keep_alive (5 minutes).',
);

/** Fields common to chat and generate. */
export const generationFields = {
  stream: streamField,
  format: optional(
    z.union([z.enum(["", "json"]), jsonSchemaSchema]),
    '"json" for any JSON object, or a JSON Schema the answer must match.',
  ),
  keep_alive: keepAliveField,
  options: optionsField,
  logprobs: optional(z.boolean(), "Return the log probability of each token."),
  top_logprobs: optional(
    z.int().min(0).max(MAX_TOP_LOGPROBS),
    "Number of alternatives to return for each token; requires logprobs.",
  ),
  ...thinkingFields,
};

export function toFormat(format: "" | "json" | Record<string, unknown> | null | undefined): OutputFormat {
  if (format == null || format === "") return { type: "text" };
  return format === "json" ? { type: "json" } : { type: "json_schema", schema: format, param: "format" };
}

export function toLogprobs(body: {
  logprobs?: boolean | null | undefined;
  top_logprobs?: number | null | undefined;
}): number | undefined {
  return body.logprobs === true ? (body.top_logprobs ?? 0) : undefined;
}

const NS_PER_MS = 1e6;

/** Converts milliseconds to whole nanoseconds, the unit of this API. */
export function nanoseconds(milliseconds: number): number {
  return Math.round(milliseconds * NS_PER_MS);
}

/** Final fields of an answer, streamed or not. */
export const summaryFields = {
  done_reason: z
    .enum(["stop", "length"])
    .describe("length: token limit; stop: any other end, including tool calls."),
  limited_by: limitField,
  total_duration: z
    .int()
    .describe("Nanoseconds from the receipt of the request to the end, including the time in the queue."),
  load_duration: z.int().describe("Nanoseconds to load the model."),
  prompt_eval_count: z.int().describe("Tokens in the prompt, chat template included."),
  prompt_eval_cached_count: z.int().describe("Prompt tokens reused from the KV cache."),
  prompt_eval_duration: z.int().describe("Nanoseconds of prefill."),
  eval_count: z.int().describe("Tokens generated."),
  eval_duration: z.int().describe("Nanoseconds of decoding."),
};

interface AnswerEnd {
  readonly reason: FinishReason;
  readonly limitedBy?: AnswerLimit | undefined;
  readonly usage: Usage;
  readonly timings: Timings;
  readonly totalMs: number;
}

export function summary({ reason, limitedBy, usage, timings, totalMs }: AnswerEnd, loadMs: number) {
  return {
    done_reason: reason === "length" ? ("length" as const) : ("stop" as const),
    ...limitFields({ limitedBy }),
    total_duration: nanoseconds(totalMs),
    load_duration: nanoseconds(loadMs),
    prompt_eval_count: usage.promptTokens,
    prompt_eval_cached_count: usage.cachedTokens,
    prompt_eval_duration: nanoseconds(timings.promptMs),
    eval_count: usage.completionTokens,
    eval_duration: nanoseconds(timings.completionMs),
  };
}

export const logprobsField = tokenLogprobsSchema.optional().describe("Tokens of this chunk, if requested.");

/** Returns the logprobs field of an answer or a line, if there are any. */
export function logprobFields(logprobs: readonly TokenLogprob[] | undefined): {
  logprobs?: z.output<typeof logprobsField>;
} {
  if (!logprobs || logprobs.length === 0) return {};
  return { logprobs: toTokenLogprobs(logprobs) };
}

/** Values of the fields that start every answer and line. */
export interface Label {
  /** Model name in the request. */
  readonly model: string;
  readonly loadMs: number;
  readonly now: () => Date;
}

export const labelFields = {
  model: z.string().describe("Model name in the request."),
  created_at: z.string().describe("ISO 8601."),
};

export function labeled({ model, now }: Pick<Label, "model" | "now">) {
  return { model, created_at: now().toISOString() };
}

/** Field done_reason of a request that only loads or unloads the model. */
export const residencyReasonField = z.enum(["load", "unload"]);
export type ResidencyReason = z.output<typeof residencyReasonField>;
