import { z } from "zod";
import { repetitionGuardField } from "../../http/input/common-fields.ts";
import { list, MAX_STOPS } from "../../http/input/bounded-lists.ts";
import {
  jsonSchemaSchema,
  MAX_TOP_LOGPROBS,
  type OutputFormat,
  type ToolChoice,
  type ToolDefinition,
} from "../../engine/protocol/generation.ts";
import type { RequestedFormat } from "../../inference/inference.ts";
import { checkFormatWithTools, constraintFields, toSingleFormat } from "../structured-output-fields.ts";
import { engineFields, unsupportedFields, probabilitiesField, samplingFields } from "../sampling-fields.ts";
import { thinkingFields, thinkSchema } from "../reasoning-fields.ts";
import { SAMPLING_FIELDS } from "../../engine/protocol/sampling-fields.ts";
import { timingsPerTokenField } from "../progress-fields.ts";
import { functionToolSchema, toolDefinition } from "../chat-input.ts";

/** Maximum number of tokens if neither the request nor the Modelfile sets a limit. */
export const DEFAULT_MAX_TOKENS = 512;

export const streamField = z
  .boolean()
  .nullish()
  .describe("Stream the answer as lines of JSON. Default: false.");

const toolChoiceSchema = z.union([
  z.enum(["auto", "none", "required"]),
  z.object({ type: z.literal("function"), function: z.object({ name: z.string() }) }),
]);

/** Fields common to /api/generate, /api/chat and the chat frames of /ws/chat. */
export const generationFields = {
  max_tokens: z
    .int()
    .min(1)
    .nullish()
    .describe(
      `Maximum number of tokens to generate. Default: the Modelfile's, otherwise ${DEFAULT_MAX_TOKENS}.`,
    ),
  n_predict: z.int().min(1).nullish().describe("llama.cpp's name of max_tokens."),
  ...samplingFields,
  // Stricter than in the other APIs, whose clients send any number.
  seed: z.int().min(-1).nullish().describe(SAMPLING_FIELDS.seed.description),
  ...engineFields,
  timings_per_token: timingsPerTokenField,
  stop: list(z.string().min(1), { max: MAX_STOPS })
    .nullish()
    .describe("Stop sequences; not included in the answer."),
  repetition_guard: repetitionGuardField,
  tools: list(functionToolSchema).nullish().describe("Functions the model may call."),
  tool_choice: toolChoiceSchema
    .nullish()
    .describe('"auto", "none", "required", or one function by name. Default: auto.'),
  format: z
    .union([z.literal("json"), z.literal(""), jsonSchemaSchema])
    .nullish()
    .describe('"json" for any JSON object, or a JSON Schema the answer must match.'),
  ...constraintFields,
  ...unsupportedFields,
  ...thinkingFields,
  images: list(z.string()).nullish().describe("Images as base64 (PNG, JPEG, GIF, BMP, WebP)."),
  think: thinkSchema.describe(
    'Let the model think before it answers: true, false, or "low", "medium", "high", "max". A level is passed to the chat template; for a template without levels, it limits thinking to 1024, 4096 or 16384 tokens. Default: the Modelfile\'s, otherwise false.',
  ),
};

/** Fields that request log probabilities. */
export const logprobFields = {
  logprobs: z
    .int()
    .min(0)
    .max(MAX_TOP_LOGPROBS)
    .nullish()
    .describe("Report the log probability of each token of the text and of this many alternatives."),
  n_probs: probabilitiesField,
};

const logprobObject = z.object(logprobFields);

export function toLogprobs({
  logprobs,
  n_probs: probabilities,
}: Partial<z.output<typeof logprobObject>>): number | undefined {
  return logprobs ?? (probabilities || undefined);
}

export const generationFieldsSchema = z.object(generationFields);
type GenerationFields = z.output<typeof generationFieldsSchema>;

export function toMaxTokens(body: GenerationFields): number | undefined {
  return body.max_tokens ?? body.n_predict ?? undefined;
}

/** @throws ServiceError invalid_parameter for several formats, or for a grammar combined with tools */
export function toFormat(body: GenerationFields): RequestedFormat {
  const format = toSingleFormat(body, { param: "format", format: toApiFormat(body.format) });
  checkFormatWithTools(format, (body.tools ?? []).length > 0 && body.tool_choice !== "none");
  return format;
}

function toApiFormat(format: GenerationFields["format"]): OutputFormat {
  if (format == null || format === "") return { type: "text" };
  return format === "json" ? { type: "json" } : { type: "json_schema", schema: format };
}

export function toTools(tools: GenerationFields["tools"]): ToolDefinition[] {
  return (tools ?? []).map((tool) => toolDefinition(tool.function));
}

export function toToolChoice(choice: GenerationFields["tool_choice"]): ToolChoice {
  if (choice == null) return "auto";
  return typeof choice === "string" ? choice : { name: choice.function.name };
}
