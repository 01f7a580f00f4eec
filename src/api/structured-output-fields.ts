import { z } from "zod";
import { type JsonSchema, jsonSchemaSchema } from "../engine/protocol/generation.ts";
import { ServiceError } from "../errors/service-error.ts";
import { list } from "../http/input/bounded-lists.ts";
import { refused } from "../http/input/common-fields.ts";
import { checkTextDepth } from "../json/json-reader.ts";
import type { RequestedFormat } from "../inference/inference.ts";
import {
  anyGbnf,
  checkedGbnf,
  isGbnf,
  TextGrammarError,
  type TextLanguage,
} from "../grammar/text-grammar.ts";

const schemaOrText = z.union([jsonSchemaSchema, z.string()]);
const regex = z.string().min(1);
const choice = list(z.string(), { least: 1 });
const anyText = z.string().min(1);

/** What vLLM's structured_outputs may hold: one of these. */
const structuredOutputs = z.object({
  json: schemaOrText.nullish(),
  regex: regex.nullish(),
  choice: choice.nullish(),
  grammar: anyText.nullish(),
  json_object: z.boolean().nullish(),
  structural_tag: refused("use tools, or describe the whole answer with a grammar"),
  whitespace_pattern: refused("describe the answer with a grammar"),
  disable_any_whitespace: refused("describe the answer with a grammar", false),
  disable_additional_properties: refused("say it in the schema", false),
});

/** What an answer must be, as llama.cpp's server, vLLM and SGLang take it, in every API that generates text. */
export const constraintFields = {
  json_schema: jsonSchemaSchema.nullish().describe("JSON Schema of the answer."),
  grammar: z
    .string()
    .nullish()
    .describe(
      "Grammar of the answer in llama.cpp's GBNF. Cannot be combined with another format, or with tools.",
    ),
  regex: regex
    .nullish()
    .describe(
      "Regular expression that the whole answer must match. Cannot be combined with another format, or with tools.",
    ),
  guided_json: schemaOrText.nullish().describe("vLLM's name of json_schema; also as text."),
  guided_regex: regex.nullish().describe("vLLM's name of regex."),
  guided_choice: choice.nullish().describe("Texts of which the answer must be one. Not with tools."),
  guided_grammar: anyText
    .nullish()
    .describe("Grammar of the answer in GBNF, where names may have underscores, or in Lark. Not with tools."),
  structured_outputs: structuredOutputs
    .nullish()
    .describe(
      "vLLM's newer form of the guided_ fields: an object with json, regex, choice, grammar or json_object.",
    ),
};

const constraintObject = z.object(constraintFields);
type ConstraintBody = Partial<z.output<typeof constraintObject>>;

/** A format by the field that asks for it. */
export interface RequestedFields {
  readonly param: string;
  readonly format: RequestedFormat;
}

/**
 * The one format of an answer.
 * @param own what the API's own field asks for
 * @throws ServiceError invalid_parameter when a request has several formats
 */
export function toConstraint(body: ConstraintBody, own: RequestedFields): RequestedFormat {
  const formats = [own, ...constraintsOf(body)].filter(({ format }) => format.type !== "text");
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

function constraintsOf(body: ConstraintBody): RequestedFields[] {
  const { structured_outputs: structured } = body;
  return [
    ...schemaOf("json_schema", body.json_schema),
    ...grammarOf("grammar", body.grammar),
    ...textsOf("regex", "regex", body.regex),
    ...schemaOf("guided_json", body.guided_json),
    ...textsOf("guided_regex", "regex", body.guided_regex),
    ...textsOf("guided_choice", "choice", body.guided_choice),
    ...anyGrammarOf("guided_grammar", body.guided_grammar),
    ...schemaOf("structured_outputs.json", structured?.json),
    ...textsOf("structured_outputs.regex", "regex", structured?.regex),
    ...textsOf("structured_outputs.choice", "choice", structured?.choice),
    ...anyGrammarOf("structured_outputs.grammar", structured?.grammar),
    ...(structured?.json_object
      ? [{ param: "structured_outputs.json_object", format: { type: "json" } as const }]
      : []),
  ];
}

function schemaOf(param: string, given: JsonSchema | string | null | undefined): RequestedFields[] {
  if (given == null || given === "") return [];
  return [{ param, format: { type: "json_schema", schema: toSchema(param, given) } }];
}

function toSchema(param: string, given: JsonSchema | string): JsonSchema {
  if (typeof given !== "string") return given;
  checkTextDepth(given, `${param}: the schema`, param);
  let parsed: unknown;
  try {
    parsed = JSON.parse(given);
  } catch {
    // Told below.
  }
  const result = jsonSchemaSchema.safeParse(parsed);
  if (result.success) return result.data;
  throw new ServiceError("invalid_parameter", `${param}: must be a JSON Schema, which is an object.`, {
    param,
  });
}

/** What a text must be; its grammar is made when the request has its turn. */
export function textsOf(
  param: string,
  language: TextLanguage,
  given: string | readonly string[] | null | undefined,
): RequestedFields[] {
  if (given == null || given === "") return [];
  return [{ param, format: { type: "texts", language, given, param } }];
}

/** As vLLM has it: in GBNF, or in the language of Lark. */
function anyGrammarOf(param: string, given: string | null | undefined): RequestedFields[] {
  return given != null && isGbnf(given) ? grammarOf(param, given, anyGbnf) : textsOf(param, "lark", given);
}

/**
 * @param read checks a grammar of llama.cpp
 * @throws ServiceError invalid_parameter for one that cannot be read
 */
export function grammarOf(
  param: string,
  given: string | null | undefined,
  read: (given: string) => string = checkedGbnf,
): RequestedFields[] {
  if (given == null || given === "") return [];
  try {
    const grammar = read(given);
    return [{ param, format: { type: "grammar", grammar, ...(param !== "grammar" && { param }) } }];
  } catch (cause) {
    if (!(cause instanceof TextGrammarError)) throw cause;
    throw new ServiceError("invalid_parameter", `${param}: cannot be enforced: ${cause.message}.`, {
      param,
      cause,
    });
  }
}

/** @throws ServiceError invalid_parameter for a grammar beside tools, whose calls have a grammar of their own */
export function checkFormatWithTools(format: RequestedFormat, offersTools: boolean): void {
  if ((format.type !== "grammar" && format.type !== "texts") || !offersTools) return;
  throw new ServiceError(
    "invalid_parameter",
    "grammar: cannot be combined with tools, nor can what is enforced by one, such as regex; use a JSON schema, or leave the tools out.",
    { param: "grammar" },
  );
}
