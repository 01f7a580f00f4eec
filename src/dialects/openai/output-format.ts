import { z } from "zod";
import { jsonSchemaSchema, type OutputFormat } from "../../engine/protocol/generation.ts";
import { ServiceError } from "../../errors/service-error.ts";

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
        strict: z.boolean().nullish().describe("Ignored: the answer always matches the schema."),
      })
      .nullish(),
    schema: schemaField,
  }),
  z.object({ type: z.literal("grammar"), grammar: grammarText.describe("A grammar in llama.cpp's GBNF.") }),
]);

/** The format of an answer, in the API's own field and in those of llama-server. */
export const formatFields = {
  response_format: responseFormatSchema
    .nullish()
    .describe(
      "Format the answer must have: text, json_object, json_schema, or grammar with a grammar in llama.cpp's GBNF.",
    ),
  json_schema: jsonSchemaSchema
    .nullish()
    .describe("JSON Schema of the answer, the same as a response_format with a schema."),
  grammar: z
    .string()
    .nullish()
    .describe(
      "Grammar of the answer in llama.cpp's GBNF. Cannot be combined with another format, or with tools.",
    ),
};

const formatSchema = z.object(formatFields);
type FormatFields = z.output<typeof formatSchema>;

/** @throws ServiceError invalid_parameter when a request has several formats, or one without its schema */
export function toOutputFormat(body: FormatFields): OutputFormat {
  const formats: { param: string; format: OutputFormat }[] = [];
  const asked = fromResponseFormat(body.response_format);
  if (asked.type !== "text") formats.push({ param: "response_format", format: asked });
  if (body.json_schema) {
    formats.push({ param: "json_schema", format: { type: "json_schema", schema: body.json_schema } });
  }
  if (body.grammar) formats.push({ param: "grammar", format: { type: "grammar", grammar: body.grammar } });
  const [first, second] = formats;
  if (first && second) {
    throw invalid(`${second.param}: cannot be combined with ${first.param}; send one format.`, second.param);
  }
  return first?.format ?? { type: "text" };
}

/** @throws ServiceError invalid_parameter for a grammar beside tools, whose calls have a grammar of their own */
export function checkFormatWithTools(format: OutputFormat, offersTools: boolean): void {
  if (format.type !== "grammar" || !offersTools) return;
  throw invalid(
    "grammar: cannot be combined with tools; use a JSON schema, or leave the tools out.",
    "grammar",
  );
}

function fromResponseFormat(format: FormatFields["response_format"]): OutputFormat {
  if (!format || format.type === "text") return { type: "text" };
  if (format.type === "grammar") return { type: "grammar", grammar: format.grammar };
  if (format.type === "json_schema" && !format.json_schema && !format.schema) {
    throw invalid("response_format.json_schema: is required.", "response_format.json_schema");
  }
  const schema = (format.type === "json_schema" ? format.json_schema?.schema : undefined) ?? format.schema;
  return schema ? { type: "json_schema", schema } : { type: "json" };
}

function invalid(message: string, param: string): ServiceError {
  return new ServiceError("invalid_parameter", message, { param });
}
