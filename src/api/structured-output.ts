import type { z } from "zod";
import { type JsonSchema, jsonSchemaSchema } from "../engine/protocol/generation.ts";
import { invalidField } from "../http/input/common-fields.ts";
import { checkTextDepth } from "../json/json-reader.ts";
import type { RequestedFormat } from "../inference/inference.ts";
import type { TextLanguage } from "../grammar/grammar-work.ts";
import type { constraintFields } from "./wire/generation-fields.ts";

type ConstraintBody = Partial<z.output<z.ZodObject<typeof constraintFields>>>;

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
    throw invalidField(second.param, `cannot be combined with ${first.param}; send one format.`);
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
