import { followReference } from "./follow-reference.ts";
import { toJsonPattern } from "./json-pattern.ts";
import { type JsonSchema, type NormalizedNodes, normalizeSchema } from "./normalize-schema.ts";

/** A keyword that llama.cpp's grammar of a schema does not have. */
export interface DroppedKeyword {
  /** Where the schema has it: "properties.age". */
  readonly path: string;
  readonly keyword: string;
}

export interface LlamaSchema {
  readonly schema: JsonSchema;
  readonly dropped: readonly DroppedKeyword[];
}

/** Any value. An empty schema would mean an object to llama.cpp. */
const ANY: JsonSchema = { description: "" };

/** What models read and grammars do not. */
const ANNOTATIONS = ["title", "description", "default", "examples"];

/** Formats of text for which llama.cpp has a rule. */
const FORMATS = new Set(["date", "time", "date-time", "uuid"]);

/** llama.cpp refuses grammars with more repetitions of something; some of its rules repeat twice. */
const MAX_REPETITIONS = 1000;

/** Keywords that limit nothing, or that limit by what they stand beside. */
const WITHOUT_LIMIT = new Set([
  ...ANNOTATIONS,
  "$schema",
  "$id",
  "$anchor",
  "$comment",
  "$defs",
  "definitions",
  "deprecated",
  "readOnly",
  "writeOnly",
  "type",
  "contentEncoding",
  "contentMediaType",
]);

const TYPES: ReadonlySet<unknown> = new Set([
  "object",
  "array",
  "string",
  "number",
  "integer",
  "boolean",
  "null",
]);

/**
 * A schema from which llama.cpp makes a grammar without fail, for calls that the model may make by its template's own
 * format: there llama.cpp makes the grammar, from the schema that it shows the model. What its converter cannot express,
 * or would read wrongly, is left out, so that the place allows more.
 * @param schema as it came, see normalizeSchema()
 */
export function toLlamaSchema(schema: JsonSchema): LlamaSchema {
  const conversion = new Conversion(schema);
  const converted = conversion.convert(schema, "");
  const definitions = conversion.definitions();
  return {
    schema: Object.keys(definitions).length > 0 ? { ...converted, $defs: definitions } : converted,
    dropped: conversion.dropped,
  };
}

class Conversion {
  readonly dropped: DroppedKeyword[] = [];
  readonly #root: JsonSchema;
  readonly #found: NormalizedNodes = { nodes: new Map(), paths: new Map(), repairs: [] };
  /** The normalized schemas' originals, which have the annotations. */
  readonly #originals = new Map<object, object>();
  /** The names of referenced schemas, and of those the converted ones. */
  readonly #names = new Map<object, string>();
  readonly #defined = new Map<string, JsonSchema>();
  /** Originals of the schemas that the current one stands at the very beginning of. */
  #begun = new Set<object>();

  constructor(root: JsonSchema) {
    this.#root = root;
  }

  definitions(): Record<string, JsonSchema> {
    return Object.fromEntries(this.#defined);
  }

  /** Converts a schema as it came. */
  convert(original: JsonSchema, path: string): JsonSchema {
    const known = this.#found.nodes.size;
    const { schema } = normalizeSchema(original, this.#found, path);
    if (this.#found.nodes.size > known) {
      for (const [from, to] of this.#found.nodes) if (typeof to === "object") this.#originals.set(to, from);
    }
    this.#begun.add(original);
    const converted = this.#convert(schema, path);
    this.#begun.delete(original);
    return converted;
  }

  #convert(schema: JsonSchema | boolean | undefined, path: string): JsonSchema {
    if (schema === false) this.#drop(path, "false");
    if (typeof schema !== "object") return ANY;
    const annotations = pick((this.#originals.get(schema) ?? {}) as JsonSchema, ANNOTATIONS);
    const handled = new Set(WITHOUT_LIMIT);
    const take = (...keywords: string[]): void => keywords.forEach((keyword) => handled.add(keyword));
    const converted = this.#limits(schema, path, take);
    for (const keyword of Object.keys(schema)) {
      if (!handled.has(keyword)) this.#drop(path, keyword);
    }
    const result = { ...annotations, ...converted };
    return Object.keys(result).length > 0 ? result : ANY;
  }

  #limits(schema: JsonSchema, path: string, take: (...keywords: string[]) => void): JsonSchema {
    if (typeof schema["$ref"] === "string") {
      take("$ref");
      return this.#reference(schema["$ref"], path);
    }
    if ("const" in schema) {
      take("const");
      return oneOfValues([schema["const"]]);
    }
    if (Array.isArray(schema["enum"])) {
      take("enum");
      return oneOfValues(schema["enum"].filter((value) => hasType(value, schema["type"])));
    }
    const types = listOf(schema["type"]).filter((type) => TYPES.has(type));
    const isObject = types.length === 0 ? "properties" in schema : types.includes("object");
    for (const keyword of ["anyOf", "oneOf"]) {
      const branches = schema[keyword];
      // With properties beside it, a choice is usually about which of them are required.
      if (!Array.isArray(branches) || (isObject && "properties" in schema)) continue;
      take(keyword);
      if (keyword === "oneOf" && branches.length > 1) this.#drop(path, keyword);
      return {
        anyOf: branches
          .filter((branch) => !this.#isBegun(branch))
          .map((branch, at) => this.#beginning(branch, join(path, `${keyword}.${at}`))),
      };
    }
    const [only, ...others] = listOf(schema["allOf"]);
    if (only !== undefined && others.length === 0 && !isObject) {
      take("allOf");
      return this.#beginning(only, join(path, "allOf.0"));
    }
    const used = types.length > 0 ? types : impliedTypes(schema);
    if (used.length === 0) return {};
    const parts = used.map((type) => this.#typed(String(type), schema, path, take));
    const [first] = parts;
    return parts.length === 1 && first ? first : { anyOf: parts };
  }

  #typed(type: string, schema: JsonSchema, path: string, take: (...keywords: string[]) => void): JsonSchema {
    switch (type) {
      case "object":
        return this.#object(schema, path, take);
      case "array":
        return this.#array(schema, path, take);
      case "string":
        return textOf(schema, take);
      case "integer":
        return integerOf(schema, take);
      default:
        return { type };
    }
  }

  #object(schema: JsonSchema, path: string, take: (...keywords: string[]) => void): JsonSchema {
    const properties = objectOf(schema["properties"]);
    const additional = schema["additionalProperties"];
    const names = Object.keys(properties);
    take("properties", "additionalProperties");
    // llama.cpp takes a property of this name for a reference.
    if (names.includes("$ref")) {
      this.#drop(path, "properties");
      return { type: "object" };
    }
    const required = listOf(schema["required"]);
    if (required.every((name) => names.includes(String(name)))) take("required");
    return {
      type: "object",
      ...(names.length > 0 && {
        properties: Object.fromEntries(
          names.map((name) => [name, this.#part(properties[name], join(path, `properties.${name}`))]),
        ),
        required: required.filter((name) => names.includes(String(name))),
      }),
      ...(additional !== undefined && {
        additionalProperties:
          typeof additional === "boolean"
            ? additional
            : this.#part(additional, join(path, "additionalProperties")),
      }),
    };
  }

  #array(schema: JsonSchema, path: string, take: (...keywords: string[]) => void): JsonSchema {
    const tuple = listOf(schema["prefixItems"]);
    if (tuple.length > 0) {
      take("prefixItems", "items");
      if (typeof schema["minItems"] !== "number" || schema["minItems"] <= tuple.length) take("minItems");
      if (typeof schema["maxItems"] !== "number" || schema["maxItems"] >= tuple.length) take("maxItems");
      return {
        type: "array",
        items: tuple.map((item, at) => this.#part(item, join(path, `prefixItems.${at}`))),
      };
    }
    take("items");
    const items = this.#part(schema["items"], join(path, "items"));
    return { type: "array", items, ...countsOf(schema, ["minItems", "maxItems"], take) };
  }

  #reference(reference: string, path: string): JsonSchema {
    const target = followReference(this.#root, reference);
    if (typeof target !== "object") {
      if (target !== true) this.#drop(path, "$ref");
      return {};
    }
    if (this.#begun.has(target)) return {};
    const known = this.#names.get(target);
    const name = known ?? this.#nameFor(reference);
    if (known === undefined) {
      this.#names.set(target, name);
      this.#defined.set(name, {}); // keeps the order of first mention, and the name
      this.#defined.set(name, this.convert(target, `$defs.${name}`));
    }
    return { $ref: `#/$defs/${name}` };
  }

  #nameFor(reference: string): string {
    const last =
      reference
        .split("/")
        .at(-1)
        ?.replaceAll(/[^A-Za-z0-9_-]/g, "") || "root";
    let name = last;
    for (let count = 2; this.#defined.has(name); count += 1) name = `${last}${count}`;
    return name;
  }

  /** A schema of something inside the value. */
  #part(schema: unknown, path: string): JsonSchema {
    const begun = this.#begun;
    this.#begun = new Set();
    const part = this.#beginning(schema, path);
    this.#begun = begun;
    return part;
  }

  /** A schema of the same value. */
  #beginning(schema: unknown, path: string): JsonSchema {
    return this.#convert(isSchema(schema) ? schema : undefined, path);
  }

  /** True for a reference to a schema that begins with it: it allows nothing that the others do not. */
  #isBegun(schema: unknown): boolean {
    const reference = objectOf(schema)["$ref"];
    const target = typeof reference === "string" ? followReference(this.#root, reference) : undefined;
    return typeof target === "object" && this.#begun.has(target);
  }

  #drop(path: string, keyword: string): void {
    this.dropped.push({ path, keyword });
  }
}

function join(path: string, name: string): string {
  return path === "" ? name : `${path}.${name}`;
}

/** Templates print a list of texts, and fail with other values in it. */
function oneOfValues(values: readonly unknown[]): JsonSchema {
  const texts = values.filter((value) => typeof value === "string");
  const parts = values
    .filter((value) => typeof value !== "string")
    .map((value): JsonSchema => (value === null ? { type: "null" } : { const: value }));
  if (texts.length > 0) parts.unshift({ type: "string", enum: texts });
  const [first] = parts;
  return parts.length === 1 && first ? first : parts.length === 0 ? {} : { anyOf: parts };
}

function hasType(value: unknown, type: unknown): boolean {
  if (type === undefined) return true;
  const own = value === null ? "null" : Array.isArray(value) ? "array" : typeof value;
  return listOf(type).some((each) => each === own || (each === "integer" && Number.isInteger(value)));
}

/** The type whose keywords a schema without a type has, where that is clear. */
function impliedTypes(schema: JsonSchema): readonly string[] {
  if ("properties" in schema || "additionalProperties" in schema) return ["object"];
  if ("items" in schema || "prefixItems" in schema) return ["array"];
  if ("pattern" in schema) return ["string"];
  return [];
}

function textOf(schema: JsonSchema, take: (...keywords: string[]) => void): JsonSchema {
  const { pattern, format } = schema;
  if (typeof pattern === "string") {
    const converted = toJsonPattern(pattern);
    if (converted !== undefined) {
      take("pattern");
      return { type: "string", pattern: converted };
    }
  }
  if (typeof format === "string" && FORMATS.has(format)) {
    take("format");
    return { type: "string", format };
  }
  return { type: "string", ...countsOf(schema, ["minLength", "maxLength"], take) };
}

function countsOf(
  schema: JsonSchema,
  keywords: readonly string[],
  take: (...keywords: string[]) => void,
): JsonSchema {
  const counts: Record<string, unknown> = {};
  for (const keyword of keywords) {
    const count = schema[keyword];
    if (typeof count !== "number" || count > MAX_REPETITIONS || count < 0) continue;
    take(keyword);
    counts[keyword] = keyword.startsWith("min") ? Math.ceil(count) : Math.floor(count);
  }
  return counts;
}

/** llama.cpp cuts the fraction off a limit, and knows one limit at each end. */
function integerOf(schema: JsonSchema, take: (...keywords: string[]) => void): JsonSchema {
  const { minimum, maximum, exclusiveMinimum, exclusiveMaximum } = schema;
  const least = [
    ...(typeof minimum === "number" ? [Math.ceil(minimum)] : []),
    ...(typeof exclusiveMinimum === "number" ? [Math.floor(exclusiveMinimum) + 1] : []),
  ];
  const most = [
    ...(typeof maximum === "number" ? [Math.floor(maximum)] : []),
    ...(typeof exclusiveMaximum === "number" ? [Math.ceil(exclusiveMaximum) - 1] : []),
  ];
  const limits = { minimum: Math.max(...least), maximum: Math.min(...most) };
  const known = Object.entries(limits).filter(([, limit]) => Number.isSafeInteger(limit));
  if (least.length === 0 || Number.isSafeInteger(limits.minimum)) take("minimum", "exclusiveMinimum");
  if (most.length === 0 || Number.isSafeInteger(limits.maximum)) take("maximum", "exclusiveMaximum");
  return { type: "integer", ...Object.fromEntries(known) };
}

function pick(schema: JsonSchema, keys: readonly string[]): JsonSchema {
  return Object.fromEntries(
    keys.filter((key) => schema[key] !== undefined && schema[key] !== null).map((key) => [key, schema[key]]),
  );
}

function listOf(value: unknown): readonly unknown[] {
  if (Array.isArray(value)) return value;
  return value === undefined || value === null ? [] : [value];
}

function objectOf(value: unknown): JsonSchema {
  return isSchema(value) && typeof value === "object" ? value : {};
}

function isSchema(value: unknown): value is JsonSchema | boolean {
  return typeof value === "boolean" || (typeof value === "object" && value !== null && !Array.isArray(value));
}
