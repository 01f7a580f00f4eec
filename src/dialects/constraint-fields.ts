import { z } from "zod";
import { jsonSchemaSchema, type OutputFormat } from "../engine/protocol/generation.ts";
import { ServiceError } from "../errors/service-error.ts";

/** What an answer must be, as llama.cpp's server takes it, in every API that generates text. */
export const constraintFields = {
  json_schema: jsonSchemaSchema.nullish().describe("JSON Schema of the answer."),
  grammar: z
    .string()
    .nullish()
    .describe(
      "Grammar of the answer in llama.cpp's GBNF. Cannot be combined with another format, or with tools.",
    ),
};

const constraintObject = z.object(constraintFields);
type ConstraintBody = Partial<z.output<typeof constraintObject>>;

/** A format by the field that asks for it. */
export interface AskedFormat {
  readonly param: string;
  readonly format: OutputFormat;
}

/**
 * The one format of an answer.
 * @param own what the API's own field asks for
 * @throws ServiceError invalid_parameter when a request has several formats
 */
export function toConstraint(body: ConstraintBody, own: AskedFormat): OutputFormat {
  const formats = [own, ...constraintsOf(body)].filter(({ format }) => format.type !== "text");
  const [first, second] = formats;
  if (first && second) {
    throw new ServiceError(
      "invalid_parameter",
      `${second.param}: cannot be combined with ${first.param}; send one format.`,
      { param: second.param },
    );
  }
  return first?.format ?? { type: "text" };
}

function constraintsOf(body: ConstraintBody): AskedFormat[] {
  const formats: AskedFormat[] = [];
  if (body.json_schema) {
    formats.push({ param: "json_schema", format: { type: "json_schema", schema: body.json_schema } });
  }
  if (body.grammar) formats.push({ param: "grammar", format: { type: "grammar", grammar: body.grammar } });
  return formats;
}

/** @throws ServiceError invalid_parameter for a grammar beside tools, whose calls have a grammar of their own */
export function checkFormatWithTools(format: OutputFormat, offersTools: boolean): void {
  if (format.type !== "grammar" || !offersTools) return;
  throw new ServiceError(
    "invalid_parameter",
    "grammar: cannot be combined with tools; use a JSON schema, or leave the tools out.",
    { param: "grammar" },
  );
}
