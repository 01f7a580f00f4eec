import { z } from "zod";
import { jsonSchemaSchema, type OutputFormat } from "../../engine/protocol/generation.ts";
import { ServiceError } from "../../errors/service-error.ts";
import { ignored } from "../../http/input/common-fields.ts";
import type { RequestedFormat } from "../../inference/inference.ts";
import {
  type RequestedFields,
  constraintFields,
  grammarOf,
  textsOf,
  toConstraint,
} from "../structured-output-fields.ts";

const schemaField = jsonSchemaSchema
  .nullish()
  .describe("The schema itself, as llama-server, Together and Fireworks take it.");
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
        schema: jsonSchemaSchema.nullish().describe("Absent: any JSON object."),
        strict: z
          .boolean()
          .nullish()
          .describe("Refuse a schema that cannot be enforced, instead of enforcing what can be."),
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

/** The format of an answer, in the API's own field and in those of other servers. */
export const formatFields = {
  response_format: responseFormatSchema
    .nullish()
    .describe(
      "Format the answer must have: text, json_object, json_schema, grammar with a grammar in llama.cpp's GBNF, or regex with a pattern.",
    ),
  ...constraintFields,
};

const formatSchema = z.object(formatFields);
type FormatFields = z.output<typeof formatSchema>;

/** @throws ServiceError invalid_parameter when a request has several formats, or one without its schema */
export function toOutputFormat(body: FormatFields): RequestedFormat {
  const { response_format: own } = body;
  const [asked = { param: "response_format", format: fromResponseFormat(own) }] = textFormat(own);
  return toConstraint(body, asked);
}

/** A format that is not JSON. */
function textFormat(format: FormatFields["response_format"]): RequestedFields[] {
  if (format?.type === "grammar") return grammarOf("response_format.grammar", format.grammar);
  if (format?.type === "regex") return textsOf("response_format.pattern", "regex", format.pattern);
  return [];
}

function fromResponseFormat(format: FormatFields["response_format"]): OutputFormat {
  if (format?.type !== "json_object" && format?.type !== "json_schema") return { type: "text" };
  if (format.type === "json_schema" && !format.json_schema && !format.schema) {
    throw new ServiceError("invalid_parameter", "response_format.json_schema: is required.", {
      param: "response_format.json_schema",
    });
  }
  const named = format.type === "json_schema" ? format.json_schema : undefined;
  const schema = named?.schema ?? format.schema;
  if (!schema) return { type: "json" };
  return { type: "json_schema", schema, ...(named?.strict != null && { strict: named.strict }) };
}

/** How long an answer is to be, which only models that were trained for it know. */
export const verbosityField = ignored(
  "no model here was trained for it; low and high are told in the header x-daybreak-warning",
);

/** What is told of a wish that is not followed. */
export function unheardVerbosity(verbosity: unknown): string[] {
  if (verbosity !== "low" && verbosity !== "high") return [];
  return ["verbosity is not followed: say in the prompt how long the answer is to be"];
}
