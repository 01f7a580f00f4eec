import type { z } from "zod";
import { explainIssue, IN_WORDS, issueText } from "../../errors/explain-issue.ts";
import { ServiceError } from "../../errors/service-error.ts";

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
