import type { KEYWORDS } from "./keywords.ts";

/** Schema or subschema. */
export type SchemaNode = JsonSchema | boolean;

/** Values of keywords by their shape. */
interface Shapes {
  schema: SchemaNode;
  "schema list": readonly SchemaNode[];
  "schema map": Readonly<Record<string, SchemaNode>>;
  dependencies: Readonly<Record<string, SchemaNode | readonly string[]>>;
  number: number;
  count: number;
  text: string;
  names: readonly string[];
  "name map": Readonly<Record<string, readonly string[]>>;
  flag: boolean;
  values: readonly unknown[];
  value: unknown;
  types: readonly TypeName[];
}

type Keywords = typeof KEYWORDS;

/** Normalized JSON Schema object: keywords of draft 2020-12 with valid values. */
export type JsonSchema = {
  readonly [
    Name in keyof Keywords as Keywords[Name]["shape"] extends keyof Shapes ? Name : never
  ]?: Keywords[Name]["shape"] extends keyof Shapes ? Shapes[Keywords[Name]["shape"]] : never;
};

/** Dependencies of properties: names of other properties, or a schema for the object. */
export function dependentsOf(
  node: JsonSchema,
): (readonly [name: string, needed: SchemaNode | readonly string[]])[] {
  return [
    ...Object.entries(node.dependentRequired ?? {}),
    ...Object.entries(node.dependentSchemas ?? {}),
    ...Object.entries(node.dependencies ?? {}),
  ];
}

/** True if a dependency is a list of names. */
export function isNames(needed: SchemaNode | readonly string[]): needed is readonly string[] {
  return Array.isArray(needed);
}

/** Types of JSON Schema. */
export type TypeName = "null" | "boolean" | "integer" | "number" | "string" | "array" | "object";

/** Names of types as agents write them, in lower case; undefined means any type. */
export const TYPE_NAMES: ReadonlyMap<string, TypeName | undefined> = new Map([
  ["null", "null"],
  ["none", "null"],
  ["nonetype", "null"],
  ["boolean", "boolean"],
  ["bool", "boolean"],
  ["integer", "integer"],
  ["int", "integer"],
  ["number", "number"],
  ["float", "number"],
  ["double", "number"],
  ["string", "string"],
  ["str", "string"],
  ["array", "array"],
  ["list", "array"],
  ["object", "object"],
  ["dict", "object"],
  ["any", undefined],
  ["type_unspecified", undefined],
]);

/**
 * Normalizes a `type` keyword; undefined means any type. Accepts names of programming languages and of Gemini.
 * @param onUnknown called for each unknown name
 */
export function normalizeType(value: unknown, onUnknown: () => void): readonly TypeName[] | undefined {
  const names = Array.isArray(value) ? value : [value];
  const types = new Set<TypeName>();
  for (const name of names) {
    const lower = typeof name === "string" ? name.toLowerCase() : undefined;
    if (lower === undefined || !TYPE_NAMES.has(lower)) {
      onUnknown();
      // Draft 3 allows schemas in a union; such a schema could allow anything.
      if (typeof name === "object" && name !== null) return undefined;
      continue;
    }
    const type = TYPE_NAMES.get(lower);
    if (type === undefined) return undefined;
    types.add(type);
  }
  return types.size > 0 ? [...types] : undefined;
}
