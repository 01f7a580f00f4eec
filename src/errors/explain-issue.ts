import { z } from "zod";

type Issue = z.core.$ZodIssue;

/** Longer values are truncated. */
const MAX_SHOWN = 60;

/** Names of fields that nobody knows may be many. */
const MAX_SHOWN_KEYS = 10;

const WHOLE_NUMBER = "a whole number";
/** Stands for zod's own words, which are replaced; whatever else a message says, the schema says. */
const UNWORDED = "not valid";

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
  /** What is wrong with it, following its name: `must be a whole number`. */
  readonly message: string;
  /** What was found instead, if that helps: `"abc"`. Not to be shown if it may be a secret. */
  readonly got: string | undefined;
}

/**
 * Pass this to every safeParse whose issues are explained: it distinguishes a schema's own messages from zod's, and
 * integers from numbers.
 */
export const IN_WORDS: { readonly error: z.core.$ZodErrorMap } = {
  error: (issue) =>
    issue.code === "invalid_type" && issue.inst instanceof z.ZodNumberFormat ? WHOLE_NUMBER : UNWORDED,
};

/**
 * Explains an issue to the author of the value.
 * @param value the validated value, whose invalid part is shown
 */
export function explainIssue(issue: Issue, value: unknown): ExplainedIssue {
  const { path, wishes, message } = closest(issue, []);
  const got = valueAt(value, path);
  if (message === undefined && got === undefined) {
    // A type is plain from the field's name; which words it takes is not.
    const choice = wishes.length > 0 && wishes.every((each) => each.startsWith('"'));
    return {
      path,
      message: choice ? `is missing; it must be ${anyOf(wishes)}` : "is missing",
      got: undefined,
    };
  }
  if (message === undefined) return { path, message: `must be ${anyOf(wishes)}`, got: shown(got) };
  // A message about a whole object, or one that quotes the value, is complete.
  const helps = message.startsWith("must ") && got !== "" && !(typeof got === "object" && got !== null);
  return { path, message, got: helps ? shown(got) : undefined };
}

/** The message with the value that was found. */
export function issueText({ message, got }: ExplainedIssue): string {
  return got === undefined ? message : `${message}, got ${got}`;
}

/** The essence of an issue: what was expected, or a complete message. */
interface Finding {
  readonly path: readonly PropertyKey[];
  readonly wishes: readonly string[];
  readonly message?: string;
  /** Whether a wrong constant, such as a type, rules out a member of a union. */
  readonly ruledOut?: boolean;
}

function closest(issue: Issue, parents: readonly PropertyKey[]): Finding {
  const path = [...parents, ...issue.path];
  if (issue.message !== UNWORDED && issue.message !== WHOLE_NUMBER)
    return { path, wishes: [], message: issue.message };
  if (issue.code !== "invalid_union") return { path, ...explainPlain(issue) };
  if (issue.errors.length > 0) return meantMember(issue.errors, path);
  const options = "options" in issue ? (issue.options ?? []) : [];
  return { path, wishes: options.map(shown) };
}

/** The member of a union that matched deepest is the intended one; if none did, all of them are expected. */
function meantMember(errors: readonly (readonly Issue[])[], path: readonly PropertyKey[]): Finding {
  const members = errors.flatMap((issues) => {
    const [first] = issues;
    if (!first) return [];
    const finding = closest(first, path);
    const ruledOut = finding.ruledOut || issues.some(isWrongMark);
    return [{ ...finding, ruledOut }];
  });
  const depth = Math.max(...members.map((member) => member.path.length));
  const furthest = members.filter((member) => member.path.length === depth);
  const possible = furthest.filter((member) => !member.ruledOut);
  const meant = possible.length > 0 ? possible : furthest;
  // A member of the right type is more informative than the types of the others.
  const precise = meant.find((member) => member.message !== undefined);
  const [first] = meant;
  if (precise || !first) return precise ?? { path, wishes: [], message: UNWORDED };
  const sameField = meant.filter((member) => String(member.path) === String(first.path));
  return { ...first, wishes: sameField.flatMap((member) => member.wishes) };
}

/** True for a constant that is another one, or may not be this one: a schema without words for it tells members apart. */
function isWrongMark({ code, path, message }: Issue): boolean {
  return path.length > 0 && (code === "invalid_value" || (code === "custom" && message === UNWORDED));
}

function explainPlain(issue: Exclude<Issue, { code: "invalid_union" }>): Omit<Finding, "path"> {
  switch (issue.code) {
    case "invalid_type":
      return {
        wishes: [issue.message === WHOLE_NUMBER ? WHOLE_NUMBER : (TYPES[issue.expected] ?? issue.expected)],
      };
    case "invalid_value":
      return { wishes: issue.values.map((value) => (value === undefined ? "absent" : shown(value))) };
    case "too_small":
      return explainSize(issue.origin, issue.inclusive === false ? "more than" : "at least", issue.minimum);
    case "too_big":
      return explainSize(issue.origin, issue.inclusive === false ? "less than" : "at most", issue.maximum);
    case "not_multiple_of":
      return { wishes: [`a multiple of ${issue.divisor}`] };
    case "unrecognized_keys":
      return {
        wishes: [],
        message: `has unknown fields: ${issue.keys.slice(0, MAX_SHOWN_KEYS).map(cut).join(", ")}`,
      };
    case "invalid_key":
    case "invalid_element":
      return { wishes: [], message: issue.issues.map((inner) => inner.message).join("; ") };
    case "invalid_format":
      return { wishes: [issue.format === "regex" ? "of another form" : `of the form ${issue.format}`] };
    default:
      return { wishes: [], message: `is ${UNWORDED}` };
  }
}

function explainSize(origin: string, relation: string, limit: number | bigint): Omit<Finding, "path"> {
  const units = UNITS[origin];
  if (units === undefined) return { wishes: [`${relation} ${limit}`] };
  if (relation === "at least" && Number(limit) === 1) return { wishes: [], message: "must not be empty" };
  return { wishes: [], message: `must have ${relation} ${limit} ${units[Number(limit) === 1 ? 0 : 1]}` };
}

function anyOf(wishes: readonly string[]): string {
  const different = [...new Set(wishes)];
  const last = different.pop() ?? "something else";
  return different.length === 0 ? last : `${different.join(", ")} or ${last}`;
}

function valueAt(value: unknown, path: readonly PropertyKey[]): unknown {
  let at = value;
  for (const key of path) at = typeof at === "object" && at !== null ? Reflect.get(at, key) : undefined;
  return at;
}

function shown(value: unknown): string {
  if (Array.isArray(value)) return value.length === 0 ? "an empty array" : "an array";
  if (typeof value === "object" && value !== null) return "an object";
  // JSON.parse turns 1e400 into Infinity, which JSON.stringify would write as null.
  if (typeof value === "number") return String(value);
  const isLong = typeof value === "string" && value.length > MAX_SHOWN;
  // Truncated before it is written, which would take time for a long text.
  const text = JSON.stringify(isLong ? value.slice(0, MAX_SHOWN) : value) ?? String(value);
  return isLong ? `${text.slice(0, MAX_SHOWN)}…` : cut(text);
}

function cut(text: string): string {
  return text.length > MAX_SHOWN ? `${text.slice(0, MAX_SHOWN)}…` : text;
}
