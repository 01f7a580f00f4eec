import { z } from "zod";
import { duration } from "../../config/config-values.ts";
import { MAX_NAME_LENGTH, modelName, optional } from "../../http/input/common-fields.ts";
import { jsonSchemaSchema, MAX_TOP_LOGPROBS, type OutputFormat } from "../../engine/protocol/generation.ts";
import { DEFAULT_SAMPLING } from "../../inference/default-sampling.ts";
import type { Model } from "../../models/model.ts";
import { toReasoningBudget, toSampling, toStop } from "../request-settings.ts";
import { thinkingFields } from "../wire/generation-fields.ts";
import { optionsField, toMaxTokens, toResidency } from "./ollama-options.ts";

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

type GenerationFields = z.output<z.ZodObject<typeof generationFields>>;

/** Returns the settings that chats and prompts have in common. */
export function toSettings(body: GenerationFields, model: Model) {
  return {
    model: model.alias,
    isBuffered: body.stream === false,
    maxTokens: toMaxTokens(body.options, model),
    stop: toStop(body.options?.stop),
    sampling: toSampling(body.options ?? {}),
    format: toFormat(body.format),
    logprobs: body.logprobs === true ? (body.top_logprobs ?? 0) : undefined,
    ...toReasoningBudget(body),
    residency: toResidency(body, model),
    repetitionGuard: body.options?.repetition_guard ?? undefined,
    defaults: { sampling: DEFAULT_SAMPLING },
  };
}

function toFormat(format: GenerationFields["format"]): OutputFormat {
  if (format == null || format === "") return { type: "text" };
  return format === "json" ? { type: "json" } : { type: "json_schema", schema: format, param: "format" };
}
