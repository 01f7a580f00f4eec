import { type GoExpression, TemplateProblem } from "./go-expression.ts";

/** An expression of Jinja, and what Go would make of it when it prints it. */
export interface JinjaValue {
  readonly code: string;
  /** text: as it is, nothing when absent; json: as JSON; arguments: JSON unless it is a text of JSON already. */
  readonly prints: "text" | "plain" | "json" | "arguments";
}

export interface GoScope {
  /** What the fields of everything (`$`) are in Jinja. */
  readonly root: ReadonlyMap<string, JinjaValue>;
  /** The item of the innermost range; undefined: everything. */
  readonly dot: JinjaValue | undefined;
  readonly variables: ReadonlyMap<string, JinjaValue>;
}

/** Fields of messages, tools and calls: their names in Go, and in the messages that a chat template is given. */
const FIELDS: ReadonlyMap<string, { key: string; prints: JinjaValue["prints"] }> = new Map([
  ["Role", { key: "role", prints: "text" }],
  ["Content", { key: "content", prints: "text" }],
  ["Thinking", { key: "reasoning_content", prints: "text" }],
  ["ToolCalls", { key: "tool_calls", prints: "json" }],
  ["ToolName", { key: "name", prints: "text" }],
  ["ToolCallID", { key: "tool_call_id", prints: "text" }],
  ["ID", { key: "id", prints: "text" }],
  ["Type", { key: "type", prints: "text" }],
  ["Function", { key: "function", prints: "json" }],
  ["Name", { key: "name", prints: "text" }],
  ["Description", { key: "description", prints: "text" }],
  ["Arguments", { key: "arguments", prints: "arguments" }],
  ["Parameters", { key: "parameters", prints: "json" }],
  ["Properties", { key: "properties", prints: "json" }],
  ["Required", { key: "required", prints: "json" }],
  ["Enum", { key: "enum", prints: "json" }],
]);

const COMPARISONS: Readonly<Record<string, string>> = { ne: "!=", lt: "<", le: "<=", gt: ">", ge: ">=" };

/**
 * Translates an expression.
 * @param position - of its action in the template
 * @throws TemplateProblem for fields and functions that are not known here
 */
export function toJinja(expression: GoExpression, scope: GoScope, position: number): JinjaValue {
  if (expression.kind === "access") return access(expression, scope, position);
  if (expression.kind === "call") return call(expression, scope, position);
  const { value } = expression;
  return plain(typeof value === "string" ? `(${literal(value)})` : String(value));
}

/** What an action that shows a value becomes inside of `{{ }}`. */
export function toPrinted({ code, prints }: JinjaValue): string {
  switch (prints) {
    case "text":
      return `(${code} or "")`;
    case "json":
      return `(${code} | tojson)`;
    case "arguments":
      return `(${code} if ${code} is string else ${code} | tojson)`;
    default:
      return code;
  }
}

/** True when the value is an object with keys, which a range goes over by key and value. */
export function isKeyed(expression: GoExpression): boolean {
  return expression.kind === "access" && expression.path.at(-1) === "Properties";
}

/** True when the items of the list are objects, which Go prints as JSON. */
export function hasObjects(expression: GoExpression): boolean {
  const last = expression.kind === "access" ? expression.path.at(-1) : undefined;
  return last === "Tools" || last === "ToolCalls" || last === "Properties" || last === "Messages";
}

function access(
  { base, path }: Extract<GoExpression, { kind: "access" }>,
  scope: GoScope,
  position: number,
): JinjaValue {
  const [first, ...rest] = path;
  if (base.kind === "root" || (base.kind === "dot" && !scope.dot)) {
    if (first === undefined) throw new TemplateProblem(position, "the whole data object cannot be printed");
    const value = scope.root.get(first);
    if (!value) throw unknown(`.${first}`, [...scope.root.keys()], position);
    return follow(value, rest, position);
  }
  if (base.kind === "dot") return follow(scope.dot!, path, position);
  if (base.kind === "value") return follow(toJinja(base.value, scope, position), path, position);
  const variable = scope.variables.get(base.name);
  if (!variable) throw new TemplateProblem(position, `the variable $${base.name} is not set`);
  return follow(variable, path, position);
}

function follow(from: JinjaValue, path: readonly string[], position: number): JinjaValue {
  let value = from;
  for (const name of path) {
    const field = FIELDS.get(name);
    if (!field) throw unknown(`.${name}`, [...FIELDS.keys()], position);
    value = { code: `${value.code}.${field.key}`, prints: field.prints };
  }
  return value;
}

function call(
  { name, arguments: operands }: Extract<GoExpression, { kind: "call" }>,
  scope: GoScope,
  position: number,
): JinjaValue {
  const codes = operands.map((operand) => toJinja(operand, scope, position).code);
  const [first = "", second = "", third] = codes;
  const expect = (least: number, most: number): void => {
    if (codes.length >= least && codes.length <= most) return;
    throw new TemplateProblem(position, `${name} has ${codes.length} arguments`);
  };
  switch (name) {
    case "eq":
      expect(2, 16);
      return plain(
        `(${codes
          .slice(1)
          .map((code) => `${first} == ${code}`)
          .join(" or ")})`,
      );
    case "ne":
    case "lt":
    case "le":
    case "gt":
    case "ge":
      expect(2, 2);
      return plain(`(${first} ${COMPARISONS[name]} ${second})`);
    case "and":
    case "or":
      expect(1, 16);
      return plain(`(${codes.join(` ${name} `)})`);
    case "not":
      expect(1, 1);
      return plain(`(not ${first})`);
    case "len":
      expect(1, 1);
      return plain(`((${first} or []) | length)`);
    case "index":
      expect(2, 2);
      return { code: `${first}[${second}]`, prints: "json" };
    case "slice":
      expect(2, 3);
      return { code: `${first}[${second}:${third ?? ""}]`, prints: "json" };
    case "json": {
      expect(1, 1);
      const value = toJinja(operands[0]!, scope, position);
      return plain(toPrinted({ ...value, prints: value.prints === "arguments" ? "arguments" : "json" }));
    }
    default:
      throw unknown(
        name,
        ["eq", "ne", "lt", "le", "gt", "ge", "and", "or", "not", "len", "index", "slice", "json"],
        position,
      );
  }
}

function plain(code: string): JinjaValue {
  return { code, prints: "plain" };
}

function unknown(name: string, known: readonly string[], position: number): TemplateProblem {
  return new TemplateProblem(position, `${name} is not known here; known are ${known.join(", ")}`);
}

/**
 * Tags that leave no space around them: text is written as strings within tags, so that it comes out the same
 * whatever an engine does with the line ends and spaces between tags.
 */
export const statement = (code: string): string => `{%- ${code} -%}`;
export const output = (code: string): string => `{{- ${code} -}}`;

/** A string literal of Jinja. No two characters that could begin or end a tag stand side by side in it. */
export function literal(text: string): string {
  return text
    .split(/(?<=[{}%#-])(?=[{}%#-])/)
    .map((part) => JSON.stringify(part))
    .join(" + ");
}
