import type { JsonSchema } from "../protocol/generation.ts";
import { toJsonPattern } from "./json-pattern.ts";

/** Keywords whose value is data, not a schema. */
const DATA = new Set(["const", "enum", "default", "examples"]);

/** Keywords whose value maps names to schemas. */
const NAMED = new Set(["properties", "patternProperties", "$defs", "definitions", "dependentSchemas"]);

/** A schema with the same meaning, all of whose patterns llama.cpp can make a grammar of, as far as there is one. */
export function toGrammarSchema(schema: JsonSchema): JsonSchema {
  return Object.fromEntries(Object.entries(schema).map(([key, value]) => [key, toGrammarValue(key, value)]));
}

function toGrammarValue(key: string, value: unknown): unknown {
  if (key === "pattern" && typeof value === "string") return toJsonPattern(value);
  if (DATA.has(key)) return value;
  if (Array.isArray(value)) return value.map((item: unknown) => toGrammarValue("", item));
  if (!isObject(value)) return value;
  if (!NAMED.has(key)) return toGrammarSchema(value);
  return Object.fromEntries(Object.entries(value).map(([name, part]) => [name, toGrammarValue("", part)]));
}

function isObject(value: unknown): value is JsonSchema {
  return typeof value === "object" && value !== null;
}
