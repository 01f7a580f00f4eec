/**
 * Serializes a JSON value canonically: equal values have equal texts, whatever the order of properties or form of
 * numbers.
 */
export function canonicalText(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(canonicalText).join(",")}]`;
  if (typeof value === "object" && value !== null) {
    const entries = Object.entries(value).filter(([, field]) => field !== undefined);
    entries.sort(([one], [other]) => (one < other ? -1 : 1));
    return `{${entries.map(([name, field]) => `${JSON.stringify(name)}:${canonicalText(field)}`).join(",")}}`;
  }
  return JSON.stringify(value === 0 ? 0 : value) ?? "null";
}

/** Length as JSON Schema counts it: in code points. */
export function lengthOf(text: string): number {
  let length = 0;
  for (const _ of text) length += 1;
  return length;
}

/** JSON type of a value; "number" for integers as well. */
export function typeOf(value: unknown): "null" | "boolean" | "number" | "string" | "array" | "object" {
  if (value === null || value === undefined) return "null";
  if (Array.isArray(value)) return "array";
  const type = typeof value;
  return type === "boolean" || type === "number" || type === "string" ? type : "object";
}
