import type { z } from "zod";
import { ServiceError } from "../../errors/service-error.ts";

type Issue = z.core.$ZodIssue;

/**
 * Parses untrusted input. Throws `invalid_parameter` whose message and param name the field at fault.
 */
export function parseInput<Schema extends z.ZodType>(schema: Schema, value: unknown): z.output<Schema> {
  const result = schema.safeParse(value);
  if (result.success) return result.data;
  const first = result.error.issues[0];
  if (!first) throw new ServiceError("invalid_parameter", "The request does not fit its schema.");
  const { path, message } = mostSpecific(first, []);
  const param = path.map(String).join(".");
  throw new ServiceError(
    "invalid_parameter",
    param === "" ? message : `${param}: ${message}`,
    param === "" ? {} : { param },
  );
}

/**
 * For a union zod reports one issue that holds those of each member: the one that got deepest is about the
 * member that was meant.
 */
function mostSpecific(
  issue: Issue,
  parents: readonly PropertyKey[],
): { path: PropertyKey[]; message: string } {
  const here = { path: [...parents, ...issue.path], message: issue.message };
  if (issue.code !== "invalid_union") return here;
  let best = here;
  for (const member of issue.errors) {
    const nested = member[0];
    if (!nested) continue;
    const candidate = mostSpecific(nested, here.path);
    if (candidate.path.length > best.path.length) best = candidate;
  }
  return best === here ? { path: here.path, message: unionMessage(issue) } : best;
}

/** "Invalid input" says nothing: names what the members of the union would have been. */
function unionMessage(issue: Extract<Issue, { code: "invalid_union" }>): string {
  const expected = new Set<string>();
  for (const member of issue.errors) {
    for (const nested of member) if (nested.code === "invalid_type") expected.add(nested.expected);
  }
  return expected.size === 0 ? issue.message : `Invalid input: expected ${[...expected].join(" or ")}`;
}
