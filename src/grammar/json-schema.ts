/** Schema or subschema. */
export type SchemaNode = JsonSchema | boolean;

type Subschemas = Readonly<Record<string, SchemaNode>>;

/** Normalized JSON Schema object: keywords of draft 2020-12 with valid values. */
export interface JsonSchema {
  readonly type?: readonly TypeName[];
  readonly enum?: readonly unknown[];
  readonly const?: unknown;
  readonly minLength?: number;
  readonly maxLength?: number;
  readonly pattern?: string;
  readonly format?: string;
  readonly minimum?: number;
  readonly maximum?: number;
  readonly exclusiveMinimum?: number;
  readonly exclusiveMaximum?: number;
  readonly multipleOf?: number;
  readonly properties?: Subschemas;
  readonly required?: readonly string[];
  readonly additionalProperties?: SchemaNode;
  readonly patternProperties?: Subschemas;
  readonly propertyNames?: SchemaNode;
  readonly minProperties?: number;
  readonly maxProperties?: number;
  readonly dependentRequired?: Readonly<Record<string, readonly string[]>>;
  readonly dependentSchemas?: Subschemas;
  readonly dependencies?: Readonly<Record<string, SchemaNode | readonly string[]>>;
  readonly unevaluatedProperties?: SchemaNode;
  readonly items?: SchemaNode;
  readonly prefixItems?: readonly SchemaNode[];
  readonly minItems?: number;
  readonly maxItems?: number;
  readonly contains?: SchemaNode;
  readonly minContains?: number;
  readonly maxContains?: number;
  readonly uniqueItems?: boolean;
  readonly unevaluatedItems?: SchemaNode;
  readonly allOf?: readonly SchemaNode[];
  readonly anyOf?: readonly SchemaNode[];
  readonly oneOf?: readonly SchemaNode[];
  readonly not?: SchemaNode;
  readonly if?: SchemaNode;
  readonly then?: SchemaNode;
  readonly else?: SchemaNode;
  readonly $ref?: string;
  readonly $dynamicRef?: string;
  readonly $recursiveRef?: string;
  readonly $recursiveAnchor?: boolean;
  readonly $defs?: Subschemas;
  readonly definitions?: Subschemas;
  readonly $id?: string;
  readonly $anchor?: string;
  readonly $dynamicAnchor?: string;
}

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
