import type { JsonSchema } from "../../../src/engine/protocol/generation.ts";

/**
 * Whether a value fits a schema: the keywords that the tests' schemas use, by the words of the standard. Lengths are in
 * characters.
 */
export function fitsSchema(value: unknown, schema: JsonSchema, root = schema): boolean {
  const fits = (part: unknown, by: unknown): boolean => isObject(by) && fitsSchema(part, by, root);
  const reference = schema["$ref"];
  if (typeof reference === "string" && !fits(value, resolve(reference, root))) return false;
  const { anyOf, type, const: constant, enum: choices } = schema;
  if (Array.isArray(anyOf) && !anyOf.some((option) => fits(value, option))) return false;
  if ("const" in schema && !isSame(value, constant)) return false;
  if (Array.isArray(choices) && !choices.some((choice) => isSame(value, choice))) return false;
  if (type !== undefined && ![type].flat().includes(typeOf(value)) && !(type === "number" && isNumber(value)))
    return false;
  if (typeof value === "string") return isTextFitting(value, schema);
  if (typeof value === "number")
    return value >= atLeast(schema["minimum"]) && value <= atMost(schema["maximum"]);
  if (Array.isArray(value)) {
    const isCountRight =
      value.length >= atLeast(schema["minItems"]) && value.length <= atMost(schema["maxItems"]);
    return isCountRight && (!schema["items"] || value.every((item) => fits(item, schema["items"])));
  }
  return !isObject(value) || areMembersFitting(value, schema, fits);
}

function areMembersFitting(
  value: JsonSchema,
  { properties, required, additionalProperties }: JsonSchema,
  fits: (part: unknown, by: unknown) => boolean,
): boolean {
  const known = isObject(properties) ? properties : {};
  if (Array.isArray(required) && !required.every((name) => String(name) in value)) return false;
  return Object.entries(value).every(([name, member]) =>
    name in known ? fits(member, known[name]) : additionalProperties !== false,
  );
}

function isTextFitting(text: string, schema: JsonSchema): boolean {
  const length = Array.from(text).length;
  if (length < atLeast(schema["minLength"]) || length > atMost(schema["maxLength"])) return false;
  const { pattern } = schema;
  return typeof pattern !== "string" || new RegExp(pattern, "u").test(text);
}

function resolve(reference: string, root: JsonSchema): unknown {
  const steps = reference.replace(/^#\/?/, "").split("/");
  return steps.reduce<unknown>((at, step) => (isObject(at) ? at[step] : undefined), root);
}

function typeOf(value: unknown): string {
  if (value === null) return "null";
  if (Array.isArray(value)) return "array";
  return Number.isInteger(value) ? "integer" : typeof value;
}

const isNumber = (value: unknown): boolean => typeof value === "number";
const isSame = (one: unknown, other: unknown): boolean => JSON.stringify(one) === JSON.stringify(other);
const atLeast = (limit: unknown): number => (typeof limit === "number" ? limit : -Infinity);
const atMost = (limit: unknown): number => (typeof limit === "number" ? limit : Infinity);

function isObject(value: unknown): value is JsonSchema {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
