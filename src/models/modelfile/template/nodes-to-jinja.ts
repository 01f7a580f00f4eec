import { type GoExpression, TemplateProblem } from "./go-expression.ts";
import type { GoNode } from "./go-template.ts";

/** Jinja namespace of the template's variables, because a loop may set a variable from outside the loop. */
export const VARIABLES = "variables";

type Range = Extract<GoNode, { kind: "range" }>;

/** Translates the nodes of a Go template. @throws TemplateProblem */
export function nodesToJinja(nodes: readonly GoNode[], scope: GoScope): string {
  return new Translator().translate(nodes, scope);
}

class Translator {
  /** Number of loops so far, which is part of their variable names. */
  #loops = 0;

  translate(nodes: readonly GoNode[], scope: GoScope): string {
    let variables = scope.variables;
    let jinja = "";
    for (const node of nodes) {
      const inner = { ...scope, variables };
      if (node.kind === "assign") {
        const value = toJinja(node.value, inner, node.position);
        const code = `${VARIABLES}.${node.name}`;
        jinja += statement(`set ${code} = ${value.code}`);
        variables = new Map([...variables, [node.name, { ...value, code }]]);
      } else jinja += this.#translateNode(node, inner);
    }
    return jinja;
  }

  #translateNode(node: Exclude<GoNode, { kind: "assign" }>, scope: GoScope): string {
    switch (node.kind) {
      case "text":
        return output(literal(node.text));
      case "print":
        return output(toPrinted(toJinja(node.value, scope, node.position)));
      case "if": {
        const branches = node.branches.map(({ condition, body, position }, index) => {
          const value = toJinja(condition, scope, position);
          const inner = node.setsDot ? { ...scope, dot: value } : scope;
          return statement(`${index === 0 ? "if" : "elif"} ${value.code}`) + this.translate(body, inner);
        });
        const otherwise =
          node.otherwise.length === 0 ? "" : statement("else") + this.translate(node.otherwise, scope);
        return branches.join("") + otherwise + statement("endif");
      }
      default:
        return this.#translateRange(node, scope);
    }
  }

  #translateRange({ list, index, item, body, position }: Range, scope: GoScope): string {
    const number = ++this.#loops;
    const dot: JinjaValue = { code: `item${number}`, prints: hasObjects(list) ? "json" : "text" };
    const indexValue: JinjaValue = { code: `index${number}`, prints: "plain" };
    const variables = new Map(scope.variables);
    if (index !== undefined) variables.set(index, indexValue);
    if (item !== undefined) variables.set(item, dot);
    const { code } = toJinja(list, scope, position);
    const inside = this.translate(body, { ...scope, dot, variables });
    const counted = index === undefined ? "" : statement(`set ${indexValue.code} = loop.index0`);
    const start = isKeyed(list)
      ? statement(`for ${indexValue.code}, ${dot.code} in (${code} or {}).items()`)
      : statement(`for ${dot.code} in (${code} or [])`) + counted;
    return start + inside + statement("endfor");
  }
}

/** A Jinja expression, and the way Go would print its value. */
export interface JinjaValue {
  readonly code: string;
  /** text: as it is, empty if absent; json: as JSON; arguments: as JSON unless it is JSON text already. */
  readonly prints: "text" | "plain" | "json" | "arguments";
}

interface GoScope {
  /** Fields of the root (`$`), in Jinja. */
  readonly root: ReadonlyMap<string, JinjaValue>;
  /** The item of the innermost range; undefined: the root. */
  readonly dot: JinjaValue | undefined;
  readonly variables: ReadonlyMap<string, JinjaValue>;
}

/** Fields of messages, tools and tool calls by their names in Go, with their keys in Jinja. */
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

/** @param position - offset of the expression's action in the template */
function toJinja(expression: GoExpression, scope: GoScope, position: number): JinjaValue {
  if (expression.kind === "access") return access(expression, scope, position);
  if (expression.kind === "call") return call(expression, scope, position);
  const { value } = expression;
  return plain(typeof value === "string" ? `(${literal(value)})` : String(value));
}

/** Returns the Jinja expression that prints a value. */
function toPrinted({ code, prints }: JinjaValue): string {
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

/** True if the value is an object, over which a range loops by key and value. */
function isKeyed(expression: GoExpression): boolean {
  return expression.kind === "access" && expression.path.at(-1) === "Properties";
}

/** True if the items of a list are objects, which Go prints as JSON. */
function hasObjects(expression: GoExpression): boolean {
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
  const expect = (min: number, max: number): void => {
    if (codes.length >= min && codes.length <= max) return;
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
 * Writes a tag that trims the space around it. Text is written as strings in tags, so that the result does not depend
 * on an engine's treatment of line ends and spaces between tags.
 */
export const statement = (code: string): string => `{%- ${code} -%}`;
export const output = (code: string): string => `{{- ${code} -}}`;

/** Writes a Jinja string literal without adjacent characters that could begin or end a tag. */
function literal(text: string): string {
  return text
    .split(/(?<=[{}%#-])(?=[{}%#-])/)
    .map((part) => JSON.stringify(part))
    .join(" + ");
}
