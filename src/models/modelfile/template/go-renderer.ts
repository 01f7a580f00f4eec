import { ServiceError } from "../../../errors/service-error.ts";
import { type GoExpression, TemplateProblem } from "./go-expression.ts";
import { cutAfterResponse, fieldsOf, type GoNode, parseGoTemplate } from "./go-template.ts";

interface PromptFields {
  readonly system: string;
  readonly prompt: string;
  readonly suffix: string;
  readonly thinking: boolean | undefined;
}

/**
 * Renders the prompt of a completion request with a Go template, up to the start of the answer. As in chats, .Messages
 * has no system message if the template also prints .System.
 * @throws ServiceError invalid_parameter for an invalid template, or one that takes too many steps
 */
export function renderPrompt(template: string, { system, prompt, suffix, thinking }: PromptFields): string {
  try {
    const nodes = parseGoTemplate(template);
    const fields = new Set(fieldsOf(nodes));
    if (template.includes("{%")) {
      throw new TemplateProblem(0, "it must be a Go template; set a template in Jinja when creating a model");
    }
    if (!fields.has("Prompt") && !fields.has("Messages")) {
      throw new TemplateProblem(0, "it shows neither {{ .Prompt }} nor {{ .Messages }}");
    }
    const showsSystem = fields.has("System");
    const messages: GoValue[] = [{ Role: "user", Content: prompt }];
    if (system !== "" && !showsSystem) messages.unshift({ Role: "system", Content: system });
    return new GoRenderer({
      System: system,
      Prompt: prompt,
      Suffix: suffix,
      Response: "",
      Messages: messages,
      Tools: [],
      Think: thinking ?? false,
      IsThinkSet: thinking !== undefined,
    }).render(cutAfterResponse(nodes));
  } catch (error) {
    if (!(error instanceof TemplateProblem)) throw error;
    throw new ServiceError("invalid_parameter", `template: ${error.message}.`, {
      param: "template",
      cause: error,
    });
  }
}

type GoValue = string | number | boolean | readonly GoValue[] | { readonly [name: string]: GoValue };

/** Maximum rendered nodes, including repetitions in loops; templates in use have some hundred. */
const MAX_STEPS = 100_000;
/** Maximum characters of a prompt, above any context. */
const MAX_CHARACTERS = 4 * 1024 * 1024;

interface Scope {
  readonly dot: GoValue;
  readonly variables: Map<string, { value: GoValue }>;
}

/** Renders the part of Go's text/template language that chat templates use: https://pkg.go.dev/text/template */
class GoRenderer {
  readonly #root: { readonly [name: string]: GoValue };
  #steps = 0;
  #characters = 0;

  constructor(root: { readonly [name: string]: GoValue }) {
    this.#root = root;
  }

  /** @throws TemplateProblem for unknown fields and functions, and for a template that takes too long */
  render(nodes: readonly GoNode[]): string {
    return this.#renderList(nodes, { dot: this.#root, variables: new Map() });
  }

  #renderList(nodes: readonly GoNode[], outer: Scope): string {
    const scope = { ...outer, variables: new Map(outer.variables) };
    return nodes.map((node) => this.#renderNode(node, scope)).join("");
  }

  #renderNode(node: GoNode, scope: Scope): string {
    if (++this.#steps > MAX_STEPS) throw new TemplateProblem(0, "it takes too many steps");
    if (node.kind === "text" || node.kind === "print") {
      const text = node.kind === "text" ? node.text : toText(this.#value(node.value, scope, node.position));
      this.#characters += text.length;
      if (this.#characters > MAX_CHARACTERS) throw new TemplateProblem(0, "its result is too long");
      return text;
    }
    return this.#renderBlock(node, scope);
  }

  #renderBlock(node: Exclude<GoNode, { kind: "text" | "print" }>, scope: Scope): string {
    switch (node.kind) {
      case "assign": {
        const value = this.#value(node.value, scope, node.position);
        // A loop may set a variable from outside the loop.
        const known = scope.variables.get(node.name);
        if (known) known.value = value;
        else scope.variables.set(node.name, { value });
        return "";
      }
      case "if": {
        for (const { condition, body, position } of node.branches) {
          const value = this.#value(condition, scope, position);
          if (isTrue(value)) return this.#renderList(body, node.setsDot ? { ...scope, dot: value } : scope);
        }
        return this.#renderList(node.otherwise, scope);
      }
      default:
        return this.#renderRange(node, scope);
    }
  }

  #renderRange(
    { list, index, item, body, position }: Extract<GoNode, { kind: "range" }>,
    scope: Scope,
  ): string {
    const items = this.#value(list, scope, position);
    if (!isList(items)) throw new TemplateProblem(position, "range needs a list");
    let text = "";
    for (const [at, dot] of items.entries()) {
      const variables = new Map(scope.variables);
      if (index !== undefined) variables.set(index, { value: at });
      if (item !== undefined) variables.set(item, { value: dot });
      text += this.#renderList(body, { dot, variables });
    }
    return text;
  }

  #value(expression: GoExpression, scope: Scope, position: number): GoValue {
    if (expression.kind === "literal") return expression.value;
    if (expression.kind === "call") return this.#call(expression, scope, position);
    return expression.path.reduce(
      (value, name) => fieldOf(value, name, position),
      this.#base(expression, scope, position),
    );
  }

  #base({ base }: Extract<GoExpression, { kind: "access" }>, scope: Scope, position: number): GoValue {
    if (base.kind === "dot") return scope.dot;
    if (base.kind === "root") return this.#root;
    if (base.kind === "value") return this.#value(base.value, scope, position);
    const variable = scope.variables.get(base.name);
    if (!variable) throw new TemplateProblem(position, `the variable $${base.name} is not set`);
    return variable.value;
  }

  #call(call: Extract<GoExpression, { kind: "call" }>, scope: Scope, position: number): GoValue {
    const { name, arguments: operands } = call;
    if (operands.length === 0) throw new TemplateProblem(position, `${name} has no arguments`);
    const value = (at: number): GoValue => {
      const operand = operands[at];
      if (!operand) throw new TemplateProblem(position, `${name} has ${operands.length} arguments`);
      return this.#value(operand, scope, position);
    };
    switch (name) {
      case "eq":
        return operands.slice(1).some((_, at) => value(at + 1) === value(0));
      case "ne":
        return value(0) !== value(1);
      case "lt":
        return value(0) < value(1);
      case "le":
        return value(0) <= value(1);
      case "gt":
        return value(0) > value(1);
      case "ge":
        return value(0) >= value(1);
      case "and":
        return operands.reduce<GoValue>((last, _, at) => (isTrue(last) ? value(at) : last), true);
      case "or":
        return operands.reduce<GoValue>((last, _, at) => (isTrue(last) ? last : value(at)), false);
      case "not":
        return !isTrue(value(0));
      case "len":
        return lengthOf(value(0));
      case "index":
        return itemOf(value(0), value(1), position);
      case "slice":
        return sliceOf(
          value(0),
          Number(value(1)),
          operands.length > 2 ? Number(value(2)) : undefined,
          position,
        );
      case "json":
        return JSON.stringify(value(0));
      default:
        throw new TemplateProblem(position, `${name} is not known here`);
    }
  }
}

/** True if a value is not empty, as in Go templates. */
function isTrue(value: GoValue): boolean {
  if (typeof value !== "object") return Boolean(value);
  return isList(value) ? value.length > 0 : Object.keys(value).length > 0;
}

function isList(value: GoValue): value is readonly GoValue[] {
  return Array.isArray(value);
}

/** Prints a value; objects are printed as JSON, as in Ollama's templates. */
function toText(value: GoValue): string {
  return typeof value === "object" ? JSON.stringify(value) : String(value);
}

function fieldOf(value: GoValue, name: string, position: number): GoValue {
  if (typeof value !== "object" || isList(value)) {
    throw new TemplateProblem(position, `.${name} is not known here`);
  }
  if (Object.hasOwn(value, name)) return value[name]!;
  // Fields that a message lacks, such as tool calls, are empty.
  if (Object.hasOwn(value, "Role")) return "";
  throw new TemplateProblem(
    position,
    `.${name} is not known here; known are ${Object.keys(value).join(", ")}`,
  );
}

function lengthOf(value: GoValue): number {
  if (typeof value === "string" || isList(value)) return value.length;
  return typeof value === "object" ? Object.keys(value).length : 0;
}

function itemOf(value: GoValue, at: GoValue, position: number): GoValue {
  const item = isList(value) ? value[Number(at)] : undefined;
  if (item === undefined) throw new TemplateProblem(position, `there is no item ${toText(at)}`);
  return item;
}

function sliceOf(value: GoValue, from: number, to: number | undefined, position: number): GoValue {
  if (typeof value === "string" || isList(value)) return value.slice(from, to);
  throw new TemplateProblem(position, "slice needs a list or a text");
}
