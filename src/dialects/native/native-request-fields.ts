import { z } from "zod";
import { modelName } from "../../http/input/known-fields.ts";
import { list, MAX_STOPS } from "../../http/input/bounded-lists.ts";
import {
  jsonSchemaSchema,
  samplingSchema,
  type OutputFormat,
  type Sampling,
  type ToolChoice,
  type ToolDefinition,
} from "../../engine/protocol/generation.ts";
import { DEFAULT_SAMPLING, toSeed } from "../../inference/default-sampling.ts";

/** Used when neither the request nor the Modelfile sets a limit. */
export const DEFAULT_MAX_TOKENS = 512;

const range = samplingSchema.shape;

export const modelField = modelName.nullish().describe("Model name. Default: the daemon's default model.");
export const streamField = z
  .boolean()
  .nullish()
  .describe("Stream the answer as lines of JSON. Default: false.");

const toolSchema = z.object({
  type: z.literal("function").default("function"),
  function: z.object({
    name: z.string().min(1).describe("Function name."),
    description: z.string().nullish().describe("Description for the model."),
    parameters: jsonSchemaSchema.nullish().describe("JSON Schema of the arguments."),
  }),
});

const toolChoiceSchema = z.union([
  z.enum(["auto", "none", "required"]),
  z.object({ type: z.literal("function"), function: z.object({ name: z.string() }) }),
]);

/** Fields that /api/generate, /api/chat and the chat frames of /ws/chat share. */
export const generationFields = {
  max_tokens: z
    .int()
    .min(1)
    .nullish()
    .describe(
      `Maximum number of tokens to generate. Default: the Modelfile's, otherwise ${DEFAULT_MAX_TOKENS}.`,
    ),
  temperature: range.temperature
    .nullable()
    .describe(
      `Sampling temperature; 0 always picks the most likely token. Default: ${DEFAULT_SAMPLING.temperature}.`,
    ),
  top_p: range.topP.nullable().describe(`Nucleus sampling. Default: ${DEFAULT_SAMPLING.topP}.`),
  top_k: range.topK.nullable().describe(`Top-k sampling; 0 disables it. Default: ${DEFAULT_SAMPLING.topK}.`),
  min_p: range.minP.nullable().describe("Minimum token probability, relative to the most likely token."),
  repeat_penalty: range.repeatPenalty.nullable().describe("Penalty for repeated tokens; 1 disables it."),
  presence_penalty: range.presencePenalty
    .nullable()
    .describe("Penalty for tokens that have already occurred."),
  frequency_penalty: range.frequencyPenalty
    .nullable()
    .describe("Penalty that grows with how often a token has occurred."),
  seed: z.int().min(-1).nullish().describe("Sampling seed. Default, and -1: a new one for each request."),
  stop: list(z.string().min(1), { most: MAX_STOPS })
    .nullish()
    .describe("Stop sequences; they are not part of the answer."),
  tools: list(toolSchema).nullish().describe("Functions the model may call."),
  tool_choice: toolChoiceSchema
    .nullish()
    .describe('"auto", "none", "required", or one function by name. Default: auto.'),
  format: z
    .union([z.literal("json"), z.literal(""), jsonSchemaSchema])
    .nullish()
    .describe('"json" for any JSON object, or a JSON Schema the answer must match.'),
  images: list(z.string()).nullish().describe("Images as base64 (PNG, JPEG, GIF, BMP, WebP)."),
  think: z
    .boolean()
    .nullish()
    .describe("Let the model think before it answers. Default: the Modelfile's, otherwise false."),
};

export const generationFieldsSchema = z.object(generationFields);
type GenerationFields = z.output<typeof generationFieldsSchema>;

export function toSampling(body: GenerationFields): Sampling {
  return {
    temperature: body.temperature ?? undefined,
    topP: body.top_p ?? undefined,
    topK: body.top_k ?? undefined,
    minP: body.min_p ?? undefined,
    repeatPenalty: body.repeat_penalty ?? undefined,
    presencePenalty: body.presence_penalty ?? undefined,
    frequencyPenalty: body.frequency_penalty ?? undefined,
    seed: toSeed(body.seed),
  };
}

export function toFormat(format: GenerationFields["format"]): OutputFormat {
  if (format == null || format === "") return { type: "text" };
  return format === "json" ? { type: "json" } : { type: "json_schema", schema: format };
}

export function toTools(tools: GenerationFields["tools"]): ToolDefinition[] {
  return (tools ?? []).map(({ function: { name, description, parameters } }) => ({
    name,
    description: description ?? undefined,
    parameters: parameters ?? undefined,
  }));
}

export function toToolChoice(choice: GenerationFields["tool_choice"]): ToolChoice {
  if (choice == null) return "auto";
  return typeof choice === "string" ? choice : { name: choice.function.name };
}
