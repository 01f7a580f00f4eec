/** The types of JSON Schema. */
export type TypeName = "null" | "boolean" | "integer" | "number" | "string" | "array" | "object";

/** Names of types as agents write them, in lower case. */
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
 * The list of types that a `type` keyword means; undefined for any. Accepts names of other languages and of Gemini.
 * @param onUnknown is called for each name that is not known
 */
export function normalizeType(value: unknown, onUnknown: () => void): readonly TypeName[] | undefined {
  const names = Array.isArray(value) ? value : [value];
  const types = new Set<TypeName>();
  for (const name of names) {
    const lower = typeof name === "string" ? name.toLowerCase() : undefined;
    if (lower === undefined || !TYPE_NAMES.has(lower)) {
      onUnknown();
      // A union with a schema in it, as draft 3 has: the schema could allow anything.
      if (typeof name === "object" && name !== null) return undefined;
      continue;
    }
    const type = TYPE_NAMES.get(lower);
    if (type === undefined) return undefined;
    types.add(type);
  }
  return types.size > 0 ? [...types] : undefined;
}
