// Where zod keeps what makes up a schema.
/* oxlint-disable no-underscore-dangle */
import { z } from "zod";
import type { Random } from "../kit/random.ts";

/** Elements of a list, unless the schema asks for more. */
const MAX_ELEMENTS = 3;
const TEXTS = [
  "",
  "a",
  "daybreak-mini",
  "Tell me about yourself.",
  "7",
  "data:image/png;base64,iVBORw0KGgo=",
  "中 é 😀",
];

/**
 * A value that a schema takes, as far as its structure says; conditions beyond it may refuse it. Optional fields are
 * there at times.
 */
export function validValue(schema: z.core.$ZodType, random: Random): unknown {
  if (schema instanceof z.ZodOptional || schema instanceof z.ZodNullable || schema instanceof z.ZodDefault)
    return validValue(schema.unwrap(), random);
  if (schema instanceof z.ZodPipe) return validValue(schema.in, random);
  if (schema instanceof z.ZodObject) return validObject(schema, random);
  if (schema instanceof z.ZodUnion) return validValue(random.pick(schema.options), random);
  if (schema instanceof z.ZodArray) return validList(schema, random);
  if (schema instanceof z.ZodRecord)
    return { [random.pick(["a", "7", "type"])]: validValue(schema.valueType, random) };
  if (schema instanceof z.ZodLiteral) return random.pick([...schema.values]);
  if (schema instanceof z.ZodEnum) return random.pick(schema.options);
  if (schema instanceof z.ZodBoolean) return random.chance(0.5);
  if (schema instanceof z.ZodNumber) return validNumber(schema, random);
  if (schema instanceof z.ZodString) return random.pick(TEXTS);
  if (schema instanceof z.ZodNull) return null;
  return random.pick([null, "a", 1, {}, { type: "object", properties: { a: { type: "string" } } }]);
}

function validObject({ shape }: z.ZodObject, random: Random): Record<string, unknown> {
  const value: Record<string, unknown> = {};
  for (const [name, field] of Object.entries(shape)) {
    if (field._zod.optin === undefined || random.chance(0.3)) value[name] = validValue(field, random);
  }
  return value;
}

function validList({ element, _zod: { bag } }: z.ZodArray, random: Random): unknown[] {
  const least = typeof bag["minimum"] === "number" ? bag["minimum"] : 0;
  return Array.from({ length: random.int(least, MAX_ELEMENTS) }, () => validValue(element, random));
}

function validNumber(schema: z.ZodNumber, random: Random): number {
  const least = Math.max(schema.minValue ?? -1, -1e6);
  const most = Math.min(schema.maxValue ?? 100, 100);
  return schema.isInt
    ? random.int(Math.ceil(least), Math.max(Math.ceil(least), Math.floor(most)))
    : least + random.fraction() * (most - least);
}
