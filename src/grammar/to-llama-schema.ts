import { toJsonPattern } from "./json-pattern.ts";
import { isObject, type JsonSchema, type SchemaNode, type TypeName } from "./json-schema.ts";
import { SchemaDocument } from "./schema-document.ts";

/** A keyword that llama.cpp's grammar of a schema does not have. */
interface DroppedKeyword {
  /** Where the schema has it: "properties.age". */
  readonly path: string;
  readonly keyword: string;
}

export interface LlamaSchema {
  readonly schema: Record<string, unknown>;
  readonly dropped: readonly DroppedKeyword[];
  /** What nobody could understand. */
  readonly lost: readonly DroppedKeyword[];
}

/** Any value. An empty schema would mean an object to llama.cpp. */
const ANY: LlamaNode = { description: "" };

/** What models read and grammars do not. */
const ANNOTATIONS = ["title", "description", "default", "examples"];

/** Keywords that limit nothing by themselves. */
const WITHOUT_LIMIT: readonly (keyof JsonSchema)[] = [
  "type",
  "$id",
  "$anchor",
  "$dynamicAnchor",
  "$defs",
  "definitions",
];

/**
 * A schema from which llama.cpp makes a grammar without fail, for calls that the model may make by its template's own
 * format: there llama.cpp makes the grammar, from the schema that it shows the model. What its converter cannot express,
 * or would read wrongly, is left out, so that the place allows more.
 */
export function toLlamaSchema(schema: unknown): LlamaSchema {
  try {
    const document = new SchemaDocument(schema);
    const conversion = new Conversion(document);
    return { schema: conversion.whole(), dropped: conversion.dropped, lost: document.losses };
  } catch (error) {
    // References that lead to references by the thousand exhaust the stack.
    if (!(error instanceof RangeError)) throw error;
    return { schema: { type: "object" }, dropped: [{ path: "", keyword: "$ref" }], lost: [] };
  }
}

class Conversion {
  readonly #dropped = new Map<JsonSchema, Set<string>>();
  readonly #document: SchemaDocument;
  /** The names of referenced schemas, and of those the converted ones. */
  readonly #names = new Map<object, string>();
  readonly #defined = new Map<string, LlamaNode>();
  /** Numbers that names have been given behind them, since many schemas may end with the same name. */
  readonly #lastCounts = new Map<string, number>();
  /** Schemas of the value that is being converted: a reference to one of them would make a rule begin with itself. */
  #begun = new Set<object>();

  constructor(document: SchemaDocument) {
    this.#document = document;
  }

  get dropped(): readonly DroppedKeyword[] {
    return [...this.#dropped].flatMap(([schema, keywords]) => {
      const path = this.#document.pathOf(schema);
      return Array.from(keywords, (keyword) => ({ path, keyword }));
    });
  }

  whole(): Record<string, unknown> {
    const root = this.#convert(this.#document.root);
    return this.#defined.size === 0 ? { ...root } : { ...root, $defs: Object.fromEntries(this.#defined) };
  }

  #convert(schema: SchemaNode): LlamaNode {
    if (typeof schema === "boolean") return ANY;
    const taken = new Set<string>(WITHOUT_LIMIT);
    this.#begun.add(schema);
    const limits = this.#limits(schema, (...keywords) => keywords.forEach((keyword) => taken.add(keyword)));
    this.#begun.delete(schema);
    for (const keyword of Object.keys(schema)) {
      if (!taken.has(keyword)) this.#drop(schema, keyword);
    }
    const converted = { ...annotationsOf(this.#document.originalOf(schema)), ...limits };
    return Object.keys(converted).length > 0 ? converted : ANY;
  }

  /** A schema of something inside the value. */
  #inner(schema: SchemaNode | undefined): LlamaNode {
    const begun = this.#begun;
    this.#begun = new Set();
    const converted = this.#convert(schema ?? true);
    this.#begun = begun;
    return converted;
  }

  #limits(schema: JsonSchema, take: Take): LlamaNode {
    if (schema.$ref !== undefined) {
      take("$ref");
      return this.#reference(schema, schema.$ref);
    }
    if ("const" in schema) {
      take("const");
      return oneOfValues([schema.const]);
    }
    const { type: types } = schema;
    if (schema.enum) {
      take("enum");
      return oneOfValues(schema.enum.filter((value) => hasType(value, types)));
    }
    // With properties beside it, a choice is usually about which of them are required.
    const hasProperties =
      schema.properties !== undefined && (types === undefined || types.includes("object"));
    if (!hasProperties) {
      for (const keyword of ["anyOf", "oneOf"] as const) {
        const branches = schema[keyword];
        if (!branches) continue;
        if (keyword === "anyOf" || branches.length === 1) take(keyword);
        const others = branches.filter((branch) => !this.#isBegun(branch));
        return others.length === 0 ? {} : { anyOf: others.map((branch) => this.#convert(branch)) };
      }
      const [only, ...others] = schema.allOf ?? [];
      if (only !== undefined && others.length === 0) {
        take("allOf");
        return this.#convert(only);
      }
    }
    const parts = (types ?? impliedTypes(schema)).map((type) => this.#typed(type, schema, take));
    const [first] = parts;
    return first === undefined ? {} : parts.length === 1 ? first : { anyOf: parts };
  }

  #typed(type: TypeName, schema: JsonSchema, take: Take): LlamaNode {
    switch (type) {
      case "object":
        return this.#object(schema, take);
      case "array":
        return this.#array(schema, take);
      case "string":
        return llamaText(schema, take);
      case "integer":
        return llamaInteger(schema, take);
      default:
        return { type };
    }
  }

  #object(schema: JsonSchema, take: Take): LlamaNode {
    const { properties = {}, required = [], additionalProperties: others } = schema;
    const isDeclared = (name: string): boolean => Object.hasOwn(properties, name);
    // llama.cpp takes a property of this name for a reference.
    if (isDeclared("$ref")) return { type: "object" };
    take("properties", "additionalProperties");
    if (required.every(isDeclared)) take("required");
    const entries = Object.entries(properties);
    return {
      type: "object",
      ...(entries.length > 0 && {
        properties: Object.fromEntries(entries.map(([name, value]) => [name, this.#inner(value)])),
        required: required.filter(isDeclared),
      }),
      ...(others !== undefined && {
        additionalProperties: typeof others === "boolean" ? others : this.#inner(others),
      }),
    };
  }

  #array(schema: JsonSchema, take: Take): LlamaNode {
    const { prefixItems: tuple = [], minItems = 0, maxItems = Infinity } = schema;
    take("prefixItems", "items");
    if (tuple.length === 0) {
      const items = this.#inner(schema.items);
      return { type: "array", items, ...llamaCounts(schema, ["minItems", "maxItems"], take) };
    }
    // llama.cpp writes all of a tuple and no more.
    if (minItems <= tuple.length) take("minItems");
    if (maxItems >= tuple.length) take("maxItems");
    return { type: "array", items: tuple.map((item) => this.#inner(item)) };
  }

  #reference(schema: JsonSchema, reference: string): LlamaNode {
    const target = this.#document.resolve(schema, reference);
    if (target === true) return {};
    if (target === undefined || target === false) {
      this.#drop(schema, "$ref");
      return {};
    }
    if (this.#begun.has(target)) return {};
    let name = this.#names.get(target);
    if (name === undefined) {
      name = this.#nameFor(reference);
      this.#names.set(target, name);
      this.#defined.set(name, {}); // takes the name
      this.#defined.set(name, this.#convert(target));
    }
    return { $ref: `#/$defs/${name}` };
  }

  /** True for a reference to a schema that begins with it: it allows nothing that the others do not. */
  #isBegun(schema: SchemaNode): boolean {
    if (typeof schema === "boolean" || schema.$ref === undefined) return false;
    const target = this.#document.resolve(schema, schema.$ref);
    return typeof target === "object" && this.#begun.has(target);
  }

  #nameFor(reference: string): string {
    const last =
      reference
        .split("/")
        .at(-1)
        ?.replaceAll(/[^A-Za-z0-9_-]/g, "") || "root";
    let name = last;
    let count = this.#lastCounts.get(last) ?? 1;
    while (this.#defined.has(name)) name = `${last}${(count += 1)}`;
    this.#lastCounts.set(last, count);
    return name;
  }

  #drop(schema: JsonSchema, keyword: string): void {
    const keywords = this.#dropped.get(schema) ?? new Set();
    this.#dropped.set(schema, keywords.add(keyword));
  }
}

/** Templates print a list of texts, and fail with other values in it. */
function oneOfValues(values: readonly unknown[]): LlamaNode {
  const texts = values.filter((value) => typeof value === "string");
  const parts = values
    .filter((value) => typeof value !== "string")
    .map((value): LlamaNode => (value === null ? { type: "null" } : { const: value }));
  if (texts.length > 0) parts.unshift({ type: "string", enum: texts });
  const [first] = parts;
  return first === undefined ? {} : parts.length === 1 ? first : { anyOf: parts };
}

function hasType(value: unknown, types: readonly TypeName[] | undefined): boolean {
  if (types === undefined) return true;
  const own = value === null ? "null" : Array.isArray(value) ? "array" : typeof value;
  return types.some((type) => type === own || (type === "integer" && Number.isInteger(value)));
}

/** The type whose keywords a schema without a type has, where that is clear. */
function impliedTypes(schema: JsonSchema): readonly TypeName[] {
  if (schema.properties !== undefined || schema.additionalProperties !== undefined) return ["object"];
  if (schema.items !== undefined || schema.prefixItems !== undefined) return ["array"];
  return schema.pattern === undefined ? [] : ["string"];
}

function annotationsOf(original: unknown): LlamaNode {
  if (!isObject(original)) return {};
  return Object.fromEntries(
    ANNOTATIONS.filter((name) => original[name] !== undefined && original[name] !== null).map((name) => [
      name,
      original[name],
    ]),
  );
}

/** A schema in the terms of llama.cpp's converter. */
type LlamaNode = Readonly<Record<string, unknown>>;

/** Is told of each keyword that has found its way into the converted schema. */
type Take = (...keywords: readonly (keyof JsonSchema)[]) => void;

/** Formats of text for which llama.cpp has a rule. */
const FORMATS = new Set(["date", "time", "date-time", "uuid"]);

/** llama.cpp refuses grammars with more repetitions of something; some of its rules repeat twice. */
const MAX_REPETITIONS = 1000;

/** A text: llama.cpp keeps its pattern, or else its format, or else its length. */
function llamaText(schema: JsonSchema, take: Take): LlamaNode {
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
function llamaCounts(
  schema: JsonSchema,
  keywords: readonly ("minLength" | "maxLength" | "minItems" | "maxItems")[],
  take: Take,
): LlamaNode {
  const kept = keywords.filter((keyword) => (schema[keyword] ?? Infinity) <= MAX_REPETITIONS);
  take(...kept);
  return Object.fromEntries(kept.map((keyword) => [keyword, schema[keyword]]));
}

/** An integer: llama.cpp cuts the fraction off a limit, and knows one limit at each end. */
function llamaInteger(schema: JsonSchema, take: Take): LlamaNode {
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
