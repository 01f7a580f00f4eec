// Where zod keeps what makes up a schema.
/* oxlint-disable no-underscore-dangle */
import { z } from "zod";

/**
 * Arrays and records in requests. zod's own ones check all elements and describe every problem, which takes minutes and
 * gigabytes for millions of elements. These check the length first and stop at the first invalid element.
 */

/** Default maximum of elements, more messages, parts or texts than any model can read. */
export const MAX_LIST_LENGTH = 16 * 1024;
/** Maximum stop sequences; the engine searches for each after every token. */
export const MAX_STOPS = 256;
/** Maximum token ids: as many as can be converted to text at once. */
export const MAX_TOKENS = 1024 * 1024;

const List = z.core.$constructor<z.ZodArray, z.core.$ZodArrayDef>("List", (array, definition) => {
  z.ZodArray.init(array, definition);
  const { element } = definition;
  const isPlain = plainTest(element);
  const maximum = maxLength(definition);
  array._zod.parse = (payload, context) => {
    const { value: input } = payload;
    if (!Array.isArray(input))
      return refused(payload, { code: "invalid_type", expected: "array", input, inst: array });
    if (input.length > maximum) {
      return refused(payload, {
        code: "too_big",
        origin: "array",
        maximum,
        inclusive: true,
        input,
        inst: array,
      });
    }
    if (isPlain && input.every(isPlain)) return payload;
    const output: unknown[] = [];
    for (const [index, value] of input.entries()) {
      const result = run(element, value, context);
      if (result.issues.length > 0) return failedInside(payload, result, index);
      output.push(result.value);
    }
    payload.value = output;
    return payload;
  };
});

const Dictionary = z.core.$constructor<z.ZodRecord, z.core.$ZodRecordDef>(
  "Dictionary",
  (record, definition) => {
    z.ZodRecord.init(record, definition);
    const { keyType, valueType } = definition;
    record._zod.parse = (payload, context) => {
      const { value: input } = payload;
      if (typeof input !== "object" || input === null || Array.isArray(input)) {
        return refused(payload, { code: "invalid_type", expected: "record", input, inst: record });
      }
      const entries = Object.entries(input);
      if (entries.length > MAX_LIST_LENGTH) {
        const size = { origin: "record", maximum: MAX_LIST_LENGTH, inclusive: true } as const;
        return refused(payload, { code: "too_big", ...size, input, inst: record });
      }
      const output: Record<string, unknown> = {};
      for (const [key, value] of entries) {
        // As zod does: not a legitimate field name.
        if (key === "__proto__") continue;
        const name = run(keyType, key, context);
        if (name.issues.length > 0) return failedInside(payload, name, key);
        const result = run(valueType, value, context);
        if (result.issues.length > 0) return failedInside(payload, result, key);
        output[key] = result.value;
      }
      payload.value = output;
      return payload;
    };
  },
);

/** Schema of an array with `min` to `max` elements. */
export function list<Element extends z.ZodType>(
  element: Element,
  { min = 0, max = MAX_LIST_LENGTH }: { min?: number; max?: number } = {},
): z.ZodArray<Element> {
  const bounded = new List({ type: "array", element }).max(max);
  // The constructor's type does not depend on the element.
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion
  return (min > 0 ? bounded.min(min) : bounded) as z.ZodArray<z.ZodType> as z.ZodArray<Element>;
}

/** Schema of an array of token ids. */
export function tokenList({ min = 0 }: { min?: number } = {}): z.ZodArray<z.ZodInt> {
  return list(z.int(), { min, max: MAX_TOKENS });
}

/** Returns the texts of a field that has one or several, each as a string or as token ids. */
export function textItems(field: string | readonly (string | number | number[])[]): (string | number[])[] {
  if (typeof field === "string") return [field];
  const ids = field.filter((item) => typeof item === "number");
  return ids.length > 0 ? [ids] : field.filter((item) => typeof item !== "number");
}

/** Schema of an object with at most {@link MAX_LIST_LENGTH} fields of arbitrary names. */
export function dictionary<Value extends z.ZodType>(
  value: Value,
  name: z.ZodString = z.string(),
): z.ZodRecord<z.ZodString, Value> {
  const record = new Dictionary({ type: "record", keyType: name, valueType: value });
  // The constructor's type does not depend on the value.
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion
  return record as z.ZodRecord<z.ZodString, z.ZodType> as z.ZodRecord<z.ZodString, Value>;
}

/** Smallest maximum among the checks of a list. */
function maxLength({ checks = [] }: z.core.$ZodArrayDef): number {
  const bounds = checks.map(({ _zod: { def } }) => ("maximum" in def ? Number(def.maximum) : Infinity));
  return Math.min(Infinity, ...bounds);
}

/** Returns a fast test for strings and integers without further checks. */
function plainTest(element: z.core.$ZodType): ((value: unknown) => boolean) | undefined {
  if (element instanceof z.ZodNumberFormat && !element._zod.def.checks?.length) return Number.isSafeInteger;
  if (element instanceof z.ZodString && !element._zod.def.checks?.length)
    return (value) => typeof value === "string";
  return undefined;
}

function run(
  schema: z.core.$ZodType,
  value: unknown,
  context: z.core.ParseContextInternal,
): z.core.ParsePayload {
  const result = schema._zod.run({ value, issues: [] }, context);
  if (result instanceof Promise) throw new TypeError("schemas of requests are not asynchronous");
  return result;
}

function refused(payload: z.core.ParsePayload, issue: z.core.$ZodRawIssue): z.core.ParsePayload {
  payload.issues.push({ ...issue, continue: false });
  return payload;
}

function failedInside(
  payload: z.core.ParsePayload,
  { issues }: z.core.ParsePayload,
  key: PropertyKey,
): z.core.ParsePayload {
  for (const issue of issues)
    payload.issues.push({ ...issue, path: [key, ...(issue.path ?? [])], continue: false });
  return payload;
}
