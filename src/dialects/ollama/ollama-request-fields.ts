import { z } from "zod";
import { MAX_NAME_LENGTH, modelName } from "../../http/input/known-fields.ts";
import { jsonSchemaSchema, MAX_TOP_LOGPROBS, type OutputFormat } from "../../engine/protocol/generation.ts";
import { thinkingFields } from "../thinking-fields.ts";
import { keepAliveField } from "./keep-alive.ts";
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
