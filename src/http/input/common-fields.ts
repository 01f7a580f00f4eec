import { z } from "zod";
import { explainIssue, IN_WORDS, issueText } from "../../errors/explain-issue.ts";
import { ServiceError } from "../../errors/service-error.ts";
import type { AppContext } from "../app-env.ts";

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

/** The model name in the path, decoded; slashes may come as they are or encoded. */
export function pathName(context: AppContext): string {
  const result = modelNameSchema.safeParse(context.req.param("name"));
  if (result.success) return result.data;
  throw new ServiceError(
    "invalid_model_name",
    "The model name in the path is empty, too long or not printable.",
    {
      param: "name",
    },
  );
}

/** A field of the daemon's own, in every API that generates. */
export const repetitionGuardField = z
  .boolean()
  .nullish()
  .describe(
    "Stop the answer when it runs in circles: the same tokens at least four times, for 512 tokens in all (256 for up to four tokens, 4096 for numbers). Default: the model's, otherwise models.repetition_guard (false).",
  );

/** A part of a path may be a name that the client chose. */
const MAX_PATH_PART = 100;

/**
 * Parses untrusted input. Throws `invalid_parameter` whose message and param name the field at fault.
 */
export function parseInput<Schema extends z.ZodType>(schema: Schema, value: unknown): z.output<Schema> {
  const result = schema.safeParse(value, IN_WORDS);
  if (result.success) return result.data;
  const first = result.error.issues[0];
  if (!first) throw new ServiceError("invalid_parameter", "The request does not fit its schema.");
  const explained = explainIssue(first, value);
  const text = issueText(explained);
  if (explained.path.length === 0) throw new ServiceError("invalid_parameter", `The request ${text}.`);
  const param = explained.path.map((part) => String(part).slice(0, MAX_PATH_PART)).join(".");
  throw new ServiceError("invalid_parameter", `${param}: ${text}`, { param });
}
