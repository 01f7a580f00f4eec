import { z } from "zod";
import { explainIssue, EXPLAINABLE, issueText } from "../../errors/explain-issue.ts";
import { ServiceError } from "../../errors/service-error.ts";
import type { AppContext } from "../app-env.ts";

/** Maximum length of a model name; hub specs with a file name and a revision are much shorter. */
export const MAX_NAME_LENGTH = 512;

// oxlint-disable-next-line no-control-regex -- finding control characters is the point
const CONTROL_CHARACTERS = /[\u0000-\u001f\u007f-\u009f]/;

/** Schema of a model name. */
export const modelName = z.string().max(MAX_NAME_LENGTH, { abort: true });
/** Field that names the model of a request. */
export const modelField = modelName.nullish().describe("Model name. Default: the daemon's default model.");

/** Schema of a model name in native routes: not empty, and printable. */
export const modelNameSchema = modelName
  .min(1)
  .refine((name) => !CONTROL_CHARACTERS.test(name), "must not hold control characters");

/** Field that a request may leave out; null means the same. */
export function optional<Type extends z.ZodType>(
  type: Type,
  description: string,
): z.ZodOptional<z.ZodNullable<Type>> {
  return type.nullish().describe(description);
}

/** Field of a query: the maximum number of entries per page, by default 20. */
export function pageLimit(most: number, description: string, usual = 20): z.ZodType<number> {
  return z.coerce.number().int().min(1).max(most).default(usual).describe(description);
}

/** Schema of a compatible API's field without effect; accepts any value. */
export function ignored(why?: string): z.ZodOptional<z.ZodType> {
  return z
    .unknown()
    .optional()
    .describe(why ? `Accepted and ignored: ${why}.` : "Accepted and ignored.");
}

/**
 * Schema of a compatible API's field that the daemon does not support. Null and empty values count as absent, because
 * some clients always send the field.
 * @param neutralValues further values that count as absent
 */
export function refused(why: string, ...neutralValues: readonly unknown[]): z.ZodOptional<z.ZodType> {
  return z
    .unknown()
    .refine((value) => isEmpty(value) || neutralValues.includes(value), { error: `is not supported: ${why}` })
    .optional()
    .describe(`Refused: ${why}.`);
}

/** Like {@link refused}, but refuses empty values as well. */
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

/** ID in the path. */
export function pathId(context: AppContext): string {
  return context.req.param("id") ?? "";
}

/** Model name in the path, decoded; its slashes may be encoded or not. @throws ServiceError invalid_model_name */
export function pathName(context: AppContext): string {
  const result = modelNameSchema.safeParse(context.req.param("name"));
  if (result.success) return result.data;
  throw new ServiceError(
    "invalid_model_name",
    "The model name in the path is empty, too long or not printable.",
    { param: "name" },
  );
}

/**
 * Returns the error of an invalid field.
 * @param problem rest of the message after the field's name, such as "is missing."
 */
export function invalidField(param: string, problem: string): ServiceError {
  return new ServiceError("invalid_parameter", `${param}: ${problem}`, { param });
}

/** Daybreak's extension of all APIs that generate. */
export const repetitionGuardField = z
  .boolean()
  .nullish()
  .describe(
    "Stop the answer when it runs in circles: the same tokens at least four times, for 512 tokens in all (256 for up to four tokens, 4096 for numbers). Default: the model's, otherwise models.repetition_guard (false).",
  );

/** Maximum length of a path segment in errors, since clients choose names of some fields. */
const MAX_PATH_PART = 100;

/**
 * Parses untrusted input.
 * @throws ServiceError invalid_parameter, which names the invalid field
 */
export function parseInput<Schema extends z.ZodType>(schema: Schema, value: unknown): z.output<Schema> {
  const result = schema.safeParse(value, EXPLAINABLE);
  if (result.success) return result.data;
  const first = result.error.issues[0];
  if (!first) throw new ServiceError("invalid_parameter", "The request does not fit its schema.");
  const explained = explainIssue(first, value);
  const text = issueText(explained);
  if (explained.path.length === 0) throw new ServiceError("invalid_parameter", `The request ${text}.`);
  const param = explained.path.map((part) => String(part).slice(0, MAX_PATH_PART)).join(".");
  throw invalidField(param, text);
}
