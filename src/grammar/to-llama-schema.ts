import { isRecord } from "../json/json-values.ts";
import type { JsonSchema, SchemaNode, TypeName } from "./json-schema.ts";
import { typeOf } from "./json-value.ts";
import { SchemaDocument } from "./schema-document.ts";
import { WorkBudget } from "./schema-errors.ts";
import { toJsonPattern } from "./text/print-pattern.ts";

/** Keyword that llama.cpp's grammar of a schema does not enforce. */
interface DroppedKeyword {
  /** Dotted path in the schema, such as "properties.age". */
  readonly path: string;
  readonly keyword: string;
}

export interface LlamaSchema {
  readonly schema: Record<string, unknown>;
  readonly dropped: readonly DroppedKeyword[];
  /** Keywords with invalid values. */
  readonly ignored: readonly DroppedKeyword[];
}

/** Schema of any value: to llama.cpp, an empty schema means an object. */
const ANY: LlamaNode = { description: "" };

/** Annotations, which templates show to models. */
const ANNOTATIONS = ["title", "description", "default", "examples"];

/** Keywords that restrict nothing by themselves. */
const UNRESTRICTING: readonly (keyof JsonSchema)[] = [
  "type",
  "$id",
  "$anchor",
  "$dynamicAnchor",
  "$defs",
  "definitions",
];

/**
 * Converts a schema so that llama.cpp's converter accepts it, for calls in the format of the model's template: there
 * llama.cpp builds the grammar from the schema that the template shows the model. Keywords that its converter cannot
 * express or would misread are dropped, so that the grammar allows more, like patterns beyond the budget.
 */
export function toLlamaSchema(schema: unknown, budget = new WorkBudget()): LlamaSchema {
  try {
    const document = new SchemaDocument(schema);
    const conversion = new Conversion(document, budget);
    return { schema: conversion.convert(), dropped: conversion.dropped, ignored: document.ignored };
  } catch (error) {
    // Chains of thousands of references exhaust the stack.
    if (!(error instanceof RangeError)) throw error;
    return { schema: { type: "object" }, dropped: [{ path: "", keyword: "$ref" }], ignored: [] };
  }
}

class Conversion {
  readonly #dropped = new Map<JsonSchema, Set<string>>();
  readonly #document: SchemaDocument;
  readonly #budget: WorkBudget;
  /** Names of referenced schemas, and their conversions. */
  readonly #names = new Map<object, string>();
  readonly #defined = new Map<string, LlamaNode>();
  /** Last suffix of each name, since many references may end with the same one. */
  readonly #lastCounts = new Map<string, number>();
  /** Schemas of the value in conversion: a reference to one of them would make a left-recursive rule. */
  #open = new Set<object>();

  constructor(document: SchemaDocument, budget: WorkBudget) {
    this.#document = document;
    this.#budget = budget;
  }

  get dropped(): readonly DroppedKeyword[] {
    return [...this.#dropped].flatMap(([schema, keywords]) => {
      const path = this.#document.pathOf(schema);
      return Array.from(keywords, (keyword) => ({ path, keyword }));
    });
  }

  convert(): Record<string, unknown> {
    const root = this.#convert(this.#document.root);
    return this.#defined.size === 0 ? { ...root } : { ...root, $defs: Object.fromEntries(this.#defined) };
  }

  #convert(schema: SchemaNode): LlamaNode {
    if (typeof schema === "boolean") return ANY;
    const taken = new Set<string>(UNRESTRICTING);
    this.#open.add(schema);
    const limits = this.#limits(schema, (...keywords) => keywords.forEach((keyword) => taken.add(keyword)));
    this.#open.delete(schema);
    for (const keyword of Object.keys(schema)) {
      if (!taken.has(keyword)) this.#drop(schema, keyword);
    }
    const converted = { ...annotationsOf(this.#document.originalOf(schema)), ...limits };
    return Object.keys(converted).length > 0 ? converted : ANY;
  }

  /** Converts the schema of a part of the value. */
  #inner(schema: SchemaNode | undefined): LlamaNode {
    const open = this.#open;
    this.#open = new Set();
    const converted = this.#convert(schema ?? true);
    this.#open = open;
    return converted;
  }

  #limits(schema: JsonSchema, markConverted: MarkConverted): LlamaNode {
    if (schema.$ref !== undefined) {
      markConverted("$ref");
      return this.#reference(schema, schema.$ref);
    }
    if ("const" in schema) {
      markConverted("const");
      return oneOfValues([schema.const]);
    }
    const { type: types } = schema;
    if (schema.enum) {
      markConverted("enum");
      return oneOfValues(schema.enum.filter((value) => hasType(value, types)));
    }
    // Beside properties, a choice usually tells which of them are required.
    const hasProperties =
      schema.properties !== undefined && (types === undefined || types.includes("object"));
    if (!hasProperties) {
      for (const keyword of ["anyOf", "oneOf"] as const) {
        const branches = schema[keyword];
        if (!branches) continue;
        if (keyword === "anyOf" || branches.length === 1) markConverted(keyword);
        const others = branches.filter((branch) => !this.#isOpen(branch));
        return others.length === 0 ? {} : { anyOf: others.map((branch) => this.#convert(branch)) };
      }
      const [only, ...others] = schema.allOf ?? [];
      if (only !== undefined && others.length === 0) {
        markConverted("allOf");
        return this.#convert(only);
      }
    }
    const parts = (types ?? impliedTypes(schema)).map((type) => this.#typed(type, schema, markConverted));
    const [first] = parts;
    return first === undefined ? {} : parts.length === 1 ? first : { anyOf: parts };
  }

  #typed(type: TypeName, schema: JsonSchema, markConverted: MarkConverted): LlamaNode {
    switch (type) {
      case "object":
        return this.#object(schema, markConverted);
      case "array":
        return this.#array(schema, markConverted);
      case "string":
        return llamaText(schema, markConverted, this.#budget);
      case "integer":
        return llamaInteger(schema, markConverted);
      default:
        return { type };
    }
  }

  #object(schema: JsonSchema, markConverted: MarkConverted): LlamaNode {
    const { properties = {}, required = [], additionalProperties: others } = schema;
    const isDeclared = (name: string): boolean => Object.hasOwn(properties, name);
    // llama.cpp mistakes a property of this name for a reference.
    if (isDeclared("$ref")) return { type: "object" };
    markConverted("properties", "additionalProperties");
    if (required.every(isDeclared)) markConverted("required");
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

  #array(schema: JsonSchema, markConverted: MarkConverted): LlamaNode {
    const { prefixItems: tuple = [], minItems = 0, maxItems = Infinity } = schema;
    markConverted("prefixItems", "items");
    if (tuple.length === 0) {
      const items = this.#inner(schema.items);
      return { type: "array", items, ...llamaCounts(schema, ["minItems", "maxItems"], markConverted) };
    }
    // llama.cpp requires exactly all items of a tuple.
    if (minItems <= tuple.length) markConverted("minItems");
    if (maxItems >= tuple.length) markConverted("maxItems");
    return { type: "array", items: tuple.map((item) => this.#inner(item)) };
  }

  #reference(schema: JsonSchema, reference: string): LlamaNode {
    const target = this.#document.resolve(schema, reference);
    if (target === true) return {};
    if (target === undefined || target === false) {
      this.#drop(schema, "$ref");
      return {};
    }
    if (this.#open.has(target)) return {};
    let name = this.#names.get(target);
    if (name === undefined) {
      name = this.#nameFor(reference);
      this.#names.set(target, name);
      this.#defined.set(name, {}); // reserves the name
      this.#defined.set(name, this.#convert(target));
    }
    return { $ref: `#/$defs/${name}` };
  }

  /** True for a reference to an enclosing schema of the same value, which allows no further values. */
  #isOpen(schema: SchemaNode): boolean {
    if (typeof schema === "boolean" || schema.$ref === undefined) return false;
    const target = this.#document.resolve(schema, schema.$ref);
    return typeof target === "object" && this.#open.has(target);
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

/** Converts an enum: templates print a list of strings and fail on other values in it. */
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
  const own = typeOf(value);
  return types.some((type) => type === own || (type === "integer" && Number.isInteger(value)));
}

/** Infers the type of a schema from its keywords, if that is unambiguous. */
function impliedTypes(schema: JsonSchema): readonly TypeName[] {
  if (schema.properties !== undefined || schema.additionalProperties !== undefined) return ["object"];
  if (schema.items !== undefined || schema.prefixItems !== undefined) return ["array"];
  return schema.pattern === undefined ? [] : ["string"];
}

function annotationsOf(original: unknown): LlamaNode {
  if (!isRecord(original)) return {};
  return Object.fromEntries(
    ANNOTATIONS.filter((name) => original[name] !== undefined && original[name] !== null).map((name) => [
      name,
      original[name],
    ]),
  );
}

/** Schema for llama.cpp's converter. */
type LlamaNode = Readonly<Record<string, unknown>>;

/** Called for each keyword that the converted schema has. */
type MarkConverted = (...keywords: readonly (keyof JsonSchema)[]) => void;

/** Formats for which llama.cpp has a rule. */
const FORMATS = new Set(["date", "time", "date-time", "uuid"]);

/** Most repetitions of a part: llama.cpp refuses grammars with more, and some of its rules repeat twice. */
const MAX_REPETITIONS = 1000;

/** Converts a string schema: llama.cpp applies its pattern, or else its format, or else its length. */
function llamaText(schema: JsonSchema, markConverted: MarkConverted, budget: WorkBudget): LlamaNode {
  const { pattern, format } = schema;
  const converted = pattern === undefined ? undefined : toJsonPattern(pattern, budget);
  if (converted !== undefined) {
    markConverted("pattern");
    return { type: "string", pattern: converted };
  }
  if (format !== undefined && FORMATS.has(format)) {
    markConverted("format");
    return { type: "string", format };
  }
  return { type: "string", ...llamaCounts(schema, ["minLength", "maxLength"], markConverted) };
}

/** Returns the limits on characters or items that llama.cpp supports. */
function llamaCounts(
  schema: JsonSchema,
  keywords: readonly ("minLength" | "maxLength" | "minItems" | "maxItems")[],
  markConverted: MarkConverted,
): LlamaNode {
  const supported = keywords.filter((keyword) => (schema[keyword] ?? Infinity) <= MAX_REPETITIONS);
  markConverted(...supported);
  return Object.fromEntries(supported.map((keyword) => [keyword, schema[keyword]]));
}

/** Converts an integer schema: llama.cpp truncates limits to integers, and applies one at each end. */
function llamaInteger(schema: JsonSchema, markConverted: MarkConverted): LlamaNode {
  const minimum = Math.max(
    Math.ceil(schema.minimum ?? -Infinity),
    Math.floor(schema.exclusiveMinimum ?? -Infinity) + 1,
  );
  const maximum = Math.min(
    Math.floor(schema.maximum ?? Infinity),
    Math.ceil(schema.exclusiveMaximum ?? Infinity) - 1,
  );
  if (Number.isSafeInteger(minimum)) markConverted("minimum", "exclusiveMinimum");
  if (Number.isSafeInteger(maximum)) markConverted("maximum", "exclusiveMaximum");
  return {
    type: "integer",
    ...(Number.isSafeInteger(minimum) && { minimum }),
    ...(Number.isSafeInteger(maximum) && { maximum }),
  };
}
