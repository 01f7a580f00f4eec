import { toJsonPattern } from "./json-pattern.ts";
import type { JsonSchema } from "./json-schema.ts";

/** A schema in the terms of llama.cpp's converter. */
export type LlamaNode = Readonly<Record<string, unknown>>;

/** Is told of each keyword that has found its way into the converted schema. */
export type Take = (...keywords: readonly (keyof JsonSchema)[]) => void;

/** Formats of text for which llama.cpp has a rule. */
const FORMATS = new Set(["date", "time", "date-time", "uuid"]);

/** llama.cpp refuses grammars with more repetitions of something; some of its rules repeat twice. */
const MAX_REPETITIONS = 1000;

/** A text: llama.cpp keeps its pattern, or else its format, or else its length. */
export function llamaText(schema: JsonSchema, take: Take): LlamaNode {
  const { pattern, format } = schema;
  const converted = pattern === undefined ? undefined : toJsonPattern(pattern);
  if (converted !== undefined) {
    take("pattern");
    return { type: "string", pattern: converted };
  }
  if (format !== undefined && FORMATS.has(format)) {
    take("format");
    return { type: "string", format };
  }
  return { type: "string", ...llamaCounts(schema, ["minLength", "maxLength"], take) };
}

/** Numbers of characters or items. */
export function llamaCounts(
  schema: JsonSchema,
  keywords: readonly ("minLength" | "maxLength" | "minItems" | "maxItems")[],
  take: Take,
): LlamaNode {
  const kept = keywords.filter((keyword) => (schema[keyword] ?? Infinity) <= MAX_REPETITIONS);
  take(...kept);
  return Object.fromEntries(kept.map((keyword) => [keyword, schema[keyword]]));
}

/** An integer: llama.cpp cuts the fraction off a limit, and knows one limit at each end. */
export function llamaInteger(schema: JsonSchema, take: Take): LlamaNode {
  const least = Math.max(
    Math.ceil(schema.minimum ?? -Infinity),
    Math.floor(schema.exclusiveMinimum ?? -Infinity) + 1,
  );
  const most = Math.min(
    Math.floor(schema.maximum ?? Infinity),
    Math.ceil(schema.exclusiveMaximum ?? Infinity) - 1,
  );
  if (Number.isSafeInteger(least)) take("minimum", "exclusiveMinimum");
  if (Number.isSafeInteger(most)) take("maximum", "exclusiveMaximum");
  return {
    type: "integer",
    ...(Number.isSafeInteger(least) && { minimum: least }),
    ...(Number.isSafeInteger(most) && { maximum: most }),
  };
}
