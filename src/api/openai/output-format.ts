import { z } from "zod";
import { jsonSchemaSchema, type OutputFormat } from "../../engine/protocol/generation.ts";
import { ignored, invalidField, optional } from "../../http/input/common-fields.ts";
import type { RequestedFormat } from "../../inference/inference.ts";
import { type FormatField, grammarFormat, toSingleFormat } from "../structured-output.ts";
import { constraintFields, strictField } from "../wire/generation-fields.ts";

const schemaField = optional(
  jsonSchemaSchema,
  "The schema, in the form of llama-server, Together and Fireworks.",
);
const grammarText = z.string().min(1);

const responseFormatSchema = z.discriminatedUnion("type", [
  z.object({ type: z.literal("text") }),
  z.object({ type: z.literal("json_object"), schema: schemaField }),
  z.object({
    type: z.literal("json_schema"),
    json_schema: z
      .object({
        name: z.string().nullish(),
        description: z.string().nullish(),
        schema: optional(jsonSchemaSchema, "Absent: any JSON object."),
        strict: strictField,
      })
      .nullish(),
    schema: schemaField,
  }),
  z.object({ type: z.literal("grammar"), grammar: grammarText.describe("A grammar in llama.cpp's GBNF.") }),
  z.object({
    type: z.literal("regex"),
    pattern: grammarText.describe("A regular expression that the whole answer must match."),
  }),
]);

/** Format fields: the API's own, and those of other servers. */
export const formatFields = {
  response_format: optional(
    responseFormatSchema,
    "Format of the answer: text, json_object, json_schema, grammar with a grammar in llama.cpp's GBNF, or regex with a pattern.",
  ),
  ...constraintFields,
};

const formatSchema = z.object(formatFields);
type FormatFields = z.output<typeof formatSchema>;

/** @throws ServiceError invalid_parameter for several formats, or for a json_schema without a schema */
export function toOutputFormat(body: FormatFields): RequestedFormat {
  const { response_format: responseFormat } = body;
  const [requested = { param: "response_format", format: fromResponseFormat(responseFormat) }] =
    toTextFormat(responseFormat);
  return toSingleFormat(body, requested);
}

/** Returns a format other than JSON. */
function toTextFormat(format: FormatFields["response_format"]): FormatField[] {
  if (format?.type === "grammar") return grammarFormat("response_format.grammar", "gbnf", format.grammar);
  if (format?.type === "regex") return grammarFormat("response_format.pattern", "regex", format.pattern);
  return [];
}

function fromResponseFormat(format: FormatFields["response_format"]): OutputFormat {
  if (format?.type !== "json_object" && format?.type !== "json_schema") return { type: "text" };
  if (format.type === "json_schema" && !format.json_schema && !format.schema) {
    throw invalidField("response_format.json_schema", "is required.");
  }
  const named = format.type === "json_schema" ? format.json_schema : undefined;
  const schema = named?.schema ?? format.schema;
  if (!schema) return { type: "json" };
  return { type: "json_schema", schema, ...(named?.strict != null && { strict: named.strict }) };
}

/** Field `verbosity`, the requested length of the answer, which only affects models trained for it. */
export const verbosityField = ignored(
  "no supported model was trained for it; low and high cause the header x-daybreak-warning",
);

/** Returns a warning if the request asks for a low or high verbosity, which is not supported. */
export function ignoredVerbosity(verbosity: unknown): string[] {
  if (verbosity !== "low" && verbosity !== "high") return [];
  return ["verbosity is not supported: state the desired length of the answer in the prompt"];
}
