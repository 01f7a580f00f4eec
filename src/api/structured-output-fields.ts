import { z } from "zod";
import { type JsonSchema, jsonSchemaSchema } from "../engine/protocol/generation.ts";
import { ServiceError } from "../errors/service-error.ts";
import { list } from "../http/input/bounded-lists.ts";
import { refused, invalidField } from "../http/input/common-fields.ts";
import { checkTextDepth } from "../json/json-reader.ts";
import type { RequestedFormat } from "../inference/inference.ts";
import type { TextLanguage } from "../grammar/grammar-work.ts";

const schemaOrText = z.union([jsonSchemaSchema, z.string()]);
const regex = z.string().min(1);
const choice = list(z.string(), { min: 1 });
const nonEmptyText = z.string().min(1);

/** vLLM's structured_outputs: an object with one of these fields. */
const structuredOutputs = z.object({
  json: schemaOrText.nullish(),
  regex: regex.nullish(),
  choice: choice.nullish(),
  grammar: nonEmptyText.nullish(),
  json_object: z.boolean().nullish(),
  structural_tag: refused("use tools, or describe the whole answer with a grammar"),
  whitespace_pattern: refused("describe the answer with a grammar"),
  disable_any_whitespace: refused("describe the answer with a grammar", false),
  disable_additional_properties: refused("set additionalProperties in the schema", false),
});

/** Structured-output fields of llama.cpp's server, vLLM and SGLang, accepted in every API that generates text. */
export const constraintFields = {
  json_schema: jsonSchemaSchema.nullish().describe("JSON Schema of the answer."),
  grammar: z
    .string()
    .nullish()
    .describe(
      "Grammar of the answer in llama.cpp's GBNF. Cannot be combined with another format or with tools.",
    ),
  regex: regex
    .nullish()
    .describe(
      "Regular expression that the whole answer must match. Cannot be combined with another format or with tools.",
    ),
  guided_json: schemaOrText.nullish().describe("vLLM's name of json_schema; may also be JSON text."),
  guided_regex: regex.nullish().describe("vLLM's name of regex."),
  guided_choice: choice.nullish().describe("Allowed answers. Cannot be combined with tools."),
  guided_grammar: nonEmptyText
    .nullish()
    .describe(
      "Grammar of the answer in GBNF, where names may have underscores, or in Lark. Cannot be combined with tools.",
    ),
  structured_outputs: structuredOutputs
    .nullish()
    .describe(
      "vLLM's newer form of the guided_ fields: an object with json, regex, choice, grammar or json_object.",
    ),
};

const constraintObject = z.object(constraintFields);
type ConstraintBody = Partial<z.output<typeof constraintObject>>;

/** A requested format, and the field that requests it. */
export interface FormatField {
  readonly param: string;
  readonly format: RequestedFormat;
}

/**
 * Returns the only format that a request has, or text.
 * @param apiFormat format from the API's own field
 * @throws ServiceError invalid_parameter when a request has several formats
 */
export function toSingleFormat(body: ConstraintBody, apiFormat: FormatField): RequestedFormat {
  const formats = [apiFormat, ...requestedFormats(body)].filter(({ format }) => format.type !== "text");
  const [first, second] = formats;
  if (first && second) {
    throw new ServiceError(
      "invalid_parameter",
      `${second.param}: cannot be combined with ${first.param}; send one format.`,
      { param: second.param },
    );
  }
  if (first?.format.type === "json_schema") return { param: first.param, ...first.format };
  return first?.format ?? { type: "text" };
}

function requestedFormats(body: ConstraintBody): FormatField[] {
  const { structured_outputs: structured } = body;
  return [
    ...schemaFormat("json_schema", body.json_schema),
    ...grammarFormat("grammar", "gbnf", body.grammar),
    ...grammarFormat("regex", "regex", body.regex),
    ...schemaFormat("guided_json", body.guided_json),
    ...grammarFormat("guided_regex", "regex", body.guided_regex),
    ...grammarFormat("guided_choice", "choice", body.guided_choice),
    ...grammarFormat("guided_grammar", "guided", body.guided_grammar),
    ...schemaFormat("structured_outputs.json", structured?.json),
    ...grammarFormat("structured_outputs.regex", "regex", structured?.regex),
    ...grammarFormat("structured_outputs.choice", "choice", structured?.choice),
    ...grammarFormat("structured_outputs.grammar", "guided", structured?.grammar),
    ...(structured?.json_object
      ? [{ param: "structured_outputs.json_object", format: { type: "json" } as const }]
      : []),
  ];
}

function schemaFormat(param: string, source: JsonSchema | string | null | undefined): FormatField[] {
  if (source == null || source === "") return [];
  return [{ param, format: { type: "json_schema", schema: toSchema(param, source) } }];
}

function toSchema(param: string, source: JsonSchema | string): JsonSchema {
  if (typeof source !== "string") return source;
  checkTextDepth(source, `${param}: the schema`, param);
  let parsed: unknown;
  try {
    parsed = JSON.parse(source);
  } catch {
    // Reported below.
  }
  const result = jsonSchemaSchema.safeParse(parsed);
  if (result.success) return result.data;
  throw invalidField(param, "must be a JSON Schema, which is an object.");
}

/** Returns a format whose grammar is compiled when the request starts. */
export function grammarFormat(
  param: string,
  language: TextLanguage,
  source: string | readonly string[] | null | undefined,
): FormatField[] {
  if (source == null || source === "") return [];
  return [{ param, format: { type: "texts", language, source, param } }];
}

/** @throws ServiceError invalid_parameter for a grammar combined with tools, whose calls use a grammar themselves */
export function checkFormatWithTools(format: RequestedFormat, offersTools: boolean): void {
  if ((format.type !== "grammar" && format.type !== "texts") || !offersTools) return;
  throw invalidField(
    "grammar",
    "a grammar, regex or choice cannot be combined with tools; use a JSON schema, or leave the tools out.",
  );
}
