import { z } from "zod";

type Issue = z.core.$ZodIssue;

/** Longer values are truncated. */
const MAX_VALUE_LENGTH = 60;

/** A value may have many unknown fields. */
const MAX_LISTED_KEYS = 10;

const WHOLE_NUMBER = "a whole number";
/** Replaces zod's own messages, so that any other message is known to come from the schema. */
const NO_MESSAGE = "not valid";

const TYPES: Readonly<Record<string, string>> = {
  string: "a string",
  number: "a number",
  int: WHOLE_NUMBER,
  boolean: "true or false",
  array: "an array",
  tuple: "an array",
  object: "an object",
  record: "an object",
  null: "null",
};

/** The unit of a size, by the type of value. */
const UNITS: Readonly<Record<string, readonly [one: string, many: string]>> = {
  string: ["character", "characters"],
  array: ["item", "items"],
  record: ["entry", "entries"],
};

interface ExplainedIssue {
  /** Path of the invalid field; empty for the whole value. */
  readonly path: readonly PropertyKey[];
  /** The problem, to follow the field's name: `must be a whole number`. */
  readonly message: string;
  /** The value found, if that helps: `"abc"`. Not to be shown if it may be a secret. */
  readonly got: string | undefined;
}

/**
 * Pass this to every safeParse whose issues are explained: it distinguishes a schema's own messages from zod's, and
 * integers from numbers.
 */
export const EXPLAINABLE: { readonly error: z.core.$ZodErrorMap } = {
  error: (issue) =>
    issue.code === "invalid_type" && issue.inst instanceof z.ZodNumberFormat ? WHOLE_NUMBER : NO_MESSAGE,
};

/**
 * Explains an issue to the author of the value.
 * @param value the validated value, whose invalid part is shown
 */
export function explainIssue(issue: Issue, value: unknown): ExplainedIssue {
  const { path, expected, message } = findCause(issue, []);
  const got = valueAt(value, path);
  if (message === undefined && got === undefined) {
    // The field's name suggests its type, but not which constants it takes.
    const isEnum = expected.length > 0 && expected.every((each) => each.startsWith('"'));
    return {
      path,
      message: isEnum ? `is missing; it must be ${joinAlternatives(expected)}` : "is missing",
      got: undefined,
    };
  }
  if (message === undefined)
    return { path, message: `must be ${joinAlternatives(expected)}`, got: describeValue(got) };
  // A message about a whole object, or one that quotes the value, is complete.
  const helps = message.startsWith("must ") && got !== "" && !(typeof got === "object" && got !== null);
  return { path, message, got: helps ? describeValue(got) : undefined };
}

/** The message with the value that was found. */
export function issueText({ message, got }: ExplainedIssue): string {
  return got === undefined ? message : `${message}, got ${got}`;
}

/** Essence of an issue: the expected values, or a complete message. */
interface Finding {
  readonly path: readonly PropertyKey[];
  readonly expected: readonly string[];
  readonly message?: string;
  /** True if a wrong constant, such as a `type`, rules out this member of a union. */
  readonly ruledOut?: boolean;
}

function findCause(issue: Issue, parents: readonly PropertyKey[]): Finding {
  const path = [...parents, ...issue.path];
  if (issue.message !== NO_MESSAGE && issue.message !== WHOLE_NUMBER)
    return { path, expected: [], message: issue.message };
  if (issue.code !== "invalid_union") return { path, ...explainPlain(issue) };
  if (issue.errors.length > 0) return intendedMember(issue.errors, path);
  const options = "options" in issue ? (issue.options ?? []) : [];
  return { path, expected: options.map(describeValue) };
}

/** Picks the member of a union that matched deepest as the intended one; if several did, names all of them. */
function intendedMember(errors: readonly (readonly Issue[])[], path: readonly PropertyKey[]): Finding {
  const members = errors.flatMap((issues) => {
    const [first] = issues;
    if (!first) return [];
    const finding = findCause(first, path);
    const ruledOut = finding.ruledOut || issues.some(isWrongDiscriminator);
    return [{ ...finding, ruledOut }];
  });
  const depth = Math.max(...members.map((member) => member.path.length));
  const furthest = members.filter((member) => member.path.length === depth);
  const possible = furthest.filter((member) => !member.ruledOut);
  const candidates = possible.length > 0 ? possible : furthest;
  // A member of the right type is more informative than the types of the others.
  const precise = candidates.find((member) => member.message !== undefined);
  const [first] = candidates;
  if (precise || !first) return precise ?? { path, expected: [], message: NO_MESSAGE };
  const sameField = candidates.filter((member) => String(member.path) === String(first.path));
  return { ...first, expected: sameField.flatMap((member) => member.expected) };
}

/** True for a wrong or forbidden constant in a field without a message of its own: it tells members of a union apart. */
function isWrongDiscriminator({ code, path, message }: Issue): boolean {
  return path.length > 0 && (code === "invalid_value" || (code === "custom" && message === NO_MESSAGE));
}

function explainPlain(issue: Exclude<Issue, { code: "invalid_union" }>): Omit<Finding, "path"> {
  switch (issue.code) {
    case "invalid_type":
      return {
        expected: [issue.message === WHOLE_NUMBER ? WHOLE_NUMBER : (TYPES[issue.expected] ?? issue.expected)],
      };
    case "invalid_value":
      return {
        expected: issue.values.map((value) => (value === undefined ? "absent" : describeValue(value))),
      };
    case "too_small":
      return explainSize(issue.origin, issue.inclusive === false ? "more than" : "at least", issue.minimum);
    case "too_big":
      return explainSize(issue.origin, issue.inclusive === false ? "less than" : "at most", issue.maximum);
    case "not_multiple_of":
      return { expected: [`a multiple of ${issue.divisor}`] };
    case "unrecognized_keys":
      return {
        expected: [],
        message: `has unknown fields: ${issue.keys.slice(0, MAX_LISTED_KEYS).map(truncate).join(", ")}`,
      };
    case "invalid_key":
    case "invalid_element":
      return { expected: [], message: issue.issues.map((inner) => inner.message).join("; ") };
    case "invalid_format":
      return { expected: [issue.format === "regex" ? "of another form" : `of the form ${issue.format}`] };
    default:
      return { expected: [], message: `is ${NO_MESSAGE}` };
  }
}

function explainSize(origin: string, relation: string, limit: number | bigint): Omit<Finding, "path"> {
  const units = UNITS[origin];
  if (units === undefined) return { expected: [`${relation} ${limit}`] };
  if (relation === "at least" && Number(limit) === 1) return { expected: [], message: "must not be empty" };
  return { expected: [], message: `must have ${relation} ${limit} ${units[Number(limit) === 1 ? 0 : 1]}` };
}

function joinAlternatives(expected: readonly string[]): string {
  const different = [...new Set(expected)];
  const last = different.pop() ?? "something else";
  return different.length === 0 ? last : `${different.join(", ")} or ${last}`;
}

function valueAt(value: unknown, path: readonly PropertyKey[]): unknown {
  let at = value;
  for (const key of path) at = typeof at === "object" && at !== null ? Reflect.get(at, key) : undefined;
  return at;
}

function describeValue(value: unknown): string {
  if (Array.isArray(value)) return value.length === 0 ? "an empty array" : "an array";
  if (typeof value === "object" && value !== null) return "an object";
  // JSON.parse turns 1e400 into Infinity, which JSON.stringify would write as null.
  if (typeof value === "number") return String(value);
  const isLong = typeof value === "string" && value.length > MAX_VALUE_LENGTH;
  // Truncate first: writing a long text would take time.
  const text = JSON.stringify(isLong ? value.slice(0, MAX_VALUE_LENGTH) : value) ?? String(value);
  return isLong ? `${text.slice(0, MAX_VALUE_LENGTH)}…` : truncate(text);
}

function truncate(text: string): string {
  return text.length > MAX_VALUE_LENGTH ? `${text.slice(0, MAX_VALUE_LENGTH)}…` : text;
}
