import { z } from "zod";
import { duration } from "../../config/config-values.ts";
import {
  type FinishReason,
  jsonSchemaSchema,
  MAX_TOP_LOGPROBS,
  type OutputFormat,
  type Timings,
  type TokenLogprob,
  type Usage,
} from "../../engine/protocol/generation.ts";
import { MAX_NAME_LENGTH, modelName } from "../../http/input/common-fields.ts";
import { type AnswerLimit, limitField, limitFields } from "../../inference/inference.ts";
import { thinkingFields } from "../reasoning-fields.ts";
import { optionsField } from "./ollama-options.ts";

export const modelField = z
  .string({ error: "is required" })
  .min(1, { error: "is required" })
  .max(MAX_NAME_LENGTH)
  .describe(
    "Model name, or a hub repository such as hf.co/owner/repo:Q4_K_M. A name without a tag means `:latest`.",
  );
/** Older clients send `name` instead of `model`. */
export const nameField = modelName.nullish().describe("Older name of model.");
export const streamField = z
  .boolean()
  .nullish()
  .describe("Stream the answer as lines of JSON. Default: true.");

/** In milliseconds. */
export const keepAliveField = duration
  .nullish()
  .describe(
    'How long the model stays in memory after this request: "5m", "1h30m", seconds, 0 to unload it, negative for forever. Default: as it was loaded; when this request loads it, models.keep_alive (5 minutes).',
  );

/** Fields that chat and generate share. */
export const generationFields = {
  stream: streamField,
  format: z
    .union([z.enum(["", "json"]), jsonSchemaSchema])
    .nullish()
    .describe('"json" for any JSON object, or a JSON Schema the answer must match.'),
  keep_alive: keepAliveField,
  options: optionsField,
  logprobs: z.boolean().nullish().describe("Return the log probability of each token."),
  top_logprobs: z
    .int()
    .min(0)
    .max(MAX_TOP_LOGPROBS)
    .nullish()
    .describe("Number of alternatives to return for each token; requires logprobs."),
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

/** The API reports durations in whole nanoseconds. */
export function nanoseconds(milliseconds: number): number {
  return Math.round(milliseconds * NS_PER_MS);
}

/** The last fields of an answer, streamed or not. */
export const summaryFields = {
  done_reason: z
    .enum(["stop", "length"])
    .describe("length: the token limit; stop: anything else, tool calls included."),
  limited_by: limitField,
  total_duration: z.int().describe("Nanoseconds from receiving the request to the end, queueing included."),
  load_duration: z.int().describe("Nanoseconds to load the model."),
  prompt_eval_count: z.int().describe("Tokens of the prompt, template included."),
  prompt_eval_cached_count: z.int().describe("Tokens of those that were in the KV cache and not read again."),
  prompt_eval_duration: z.int().describe("Nanoseconds of prefill."),
  eval_count: z.int().describe("Tokens generated."),
  eval_duration: z.int().describe("Nanoseconds of decoding."),
};

interface End {
  readonly reason: FinishReason;
  readonly limitedBy?: AnswerLimit | undefined;
  readonly usage: Usage;
  readonly timings: Timings;
  readonly totalMs: number;
}

export function summary({ reason, limitedBy, usage, timings, totalMs }: End, loadMs: number) {
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

const tokenSchema = z.object({ token: z.string(), logprob: z.number(), bytes: z.array(z.int()).nullable() });
export const logprobsField = z
  .array(tokenSchema.extend({ top_logprobs: z.array(tokenSchema) }))
  .optional()
  .describe("Of the tokens in this piece, when requested.");

/** The logprobs field of an answer or a line, if there are any. */
export function logprobFields(logprobs: readonly TokenLogprob[] | undefined): {
  logprobs?: z.output<typeof logprobsField>;
} {
  if (!logprobs || logprobs.length === 0) return {};
  return {
    logprobs: logprobs.map(({ top, ...token }) => ({
      ...withoutId(token),
      top_logprobs: top.map(withoutId),
    })),
  };
}

function withoutId({ token, logprob, bytes }: Omit<TokenLogprob, "top">): z.output<typeof tokenSchema> {
  return { token, logprob, bytes };
}

/** The values of the fields that start every answer and line. */
export interface Label {
  /** The name in the request. */
  readonly model: string;
  readonly loadMs: number;
  readonly now: () => Date;
}

export const labelFields = {
  model: z.string().describe("The name in the request."),
  created_at: z.string().describe("ISO 8601."),
};

export function labeled({ model, now }: Pick<Label, "model" | "now">) {
  return { model, created_at: now().toISOString() };
}

/** The done_reason of a request that only loads or unloads the model. */
export const residencyReasonField = z.enum(["load", "unload"]);
export type ResidencyReason = z.output<typeof residencyReasonField>;
