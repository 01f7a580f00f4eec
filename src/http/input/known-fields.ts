import { z } from "zod";

/** Longest name that is looked up; hub specs with a file name and a revision are much shorter. */
export const MAX_NAME_LENGTH = 512;

// oxlint-disable-next-line no-control-regex -- finding control characters is the point
const CONTROL_CHARACTERS = /[\u0000-\u001f\u007f-\u009f]/;

/** A model's name, of any kind. */
export const modelName = z.string().max(MAX_NAME_LENGTH, { abort: true });

/** Name of a model on the daemon's own routes: not empty, and printable. */
export const modelNameSchema = modelName
  .min(1)
  .refine((name) => !CONTROL_CHARACTERS.test(name), "must not hold control characters");

/** A field of a compatible API that has no effect here; any value is accepted. */
export function ignored(why?: string): z.ZodOptional<z.ZodType> {
  return z
    .unknown()
    .optional()
    .describe(why ? `Accepted and ignored: ${why}.` : "Accepted and ignored.");
}

/**
 * A field of a compatible API for something that the daemon does not support. Null and empty values count as absent,
 * because some clients always send the field.
 * @param harmless values that ask for nothing, either
 */
export function refused(why: string, ...harmless: readonly unknown[]): z.ZodOptional<z.ZodType> {
  return z
    .unknown()
    .refine((value) => isEmpty(value) || harmless.includes(value), { error: `is not supported: ${why}` })
    .optional()
    .describe(`Refused: ${why}.`);
}

/** As {@link refused}, for a field that asks for something even when it is an empty object. */
export function refusedEvenEmpty(why: string): z.ZodOptional<z.ZodType> {
  return z
    .unknown()
    .refine((value) => value == null, { error: `is not supported: ${why}` })
    .optional()
    .describe(`Refused: ${why}.`);
}

function isEmpty(value: unknown): boolean {
  if (value == null || value === "") return true;
  return typeof value === "object" && Object.keys(value).length === 0;
}
