import { type GoExpression, GoExpressionReader, TemplateProblem } from "./go-expression.ts";

/** Nodes of a Go template: https://pkg.go.dev/text/template#hdr-Actions */
export type GoNode =
  | { readonly kind: "text"; readonly text: string }
  | { readonly kind: "print"; readonly value: GoExpression; readonly position: number }
  | {
      readonly kind: "if";
      readonly branches: readonly GoBranch[];
      readonly otherwise: readonly GoNode[];
      /** True for a "with", whose condition is the dot of its body. */
      readonly setsDot: boolean;
    }
  | {
      readonly kind: "range";
      readonly list: GoExpression;
      /** Variable names for the index or key, and for the item. */
      readonly index: string | undefined;
      readonly item: string | undefined;
      readonly body: readonly GoNode[];
      readonly position: number;
    }
  | {
      readonly kind: "assign";
      readonly name: string;
      readonly value: GoExpression;
      readonly position: number;
    };

interface GoBranch {
  readonly condition: GoExpression;
  readonly body: readonly GoNode[];
  readonly position: number;
}

/** Maximum nesting of actions; the deepest templates in use have eight. */
const MAX_DEPTH = 32;

type TemplatePart = { readonly text: string } | { readonly action: string; readonly position: number };

/**
 * Parses the part of Go's text/template language that chat templates use.
 * @throws TemplateProblem
 */
export function parseGoTemplate(template: string): readonly GoNode[] {
  const parser = new Parser(splitParts(template), template.length);
  return parser.parse();
}

/** Splits a template into text and actions, applies `{{-` and `-}}`, and removes comments. */
function splitParts(template: string): TemplatePart[] {
  const parts: TemplatePart[] = [];
  let at = 0;
  let trimsNext = false;
  for (;;) {
    const open = template.indexOf("{{", at);
    let text = template.slice(at, open === -1 ? undefined : open);
    if (trimsNext) text = text.trimStart();
    if (open === -1) return text === "" ? parts : [...parts, { text }];
    const trimsBefore = /^-\s/.test(template.slice(open + 2, open + 4));
    if (trimsBefore) text = text.trimEnd();
    if (text !== "") parts.push({ text });
    const from = open + (trimsBefore ? 3 : 2);
    const close = findClose(template, from);
    const inner = template.slice(from, close);
    trimsNext = /\s-$/.test(inner);
    const action = trimsNext ? inner.slice(0, -1) : inner;
    if (!/^\s*\/\*/.test(action)) parts.push({ action, position: from });
    at = close + 2;
  }
}

/** Matches a string in double quotes, the start of a raw string or a comment, or the end of an action. */
const PART = /"(?:[^"\\\n]|\\.)*("?)|`|\/\*|\}\}/g;

/** Returns the position of an action's `}}`, ignoring braces in its strings and comments. */
function findClose(template: string, from: number): number {
  PART.lastIndex = from;
  for (let match = PART.exec(template); match; match = PART.exec(template)) {
    const [part, quote] = match;
    if (part === "}}") return match.index;
    // An unclosed string must end the search, which would otherwise restart at each of its characters.
    if (quote === "") throw new TemplateProblem(match.index, "a string is not closed");
    if (quote !== undefined) continue;
    const [end, kind] = part === "`" ? ["`", "a string"] : ["*/", "a comment"];
    const at = template.indexOf(end, PART.lastIndex);
    if (at === -1) throw new TemplateProblem(match.index, `${kind} is not closed`);
    PART.lastIndex = at + end.length;
  }
  throw new TemplateProblem(from, "an action that begins with {{ is not closed");
}

class Parser {
  readonly #parts: readonly TemplatePart[];
  readonly #length: number;
  #at = 0;

  constructor(parts: readonly TemplatePart[], length: number) {
    this.#parts = parts;
    this.#length = length;
  }

  parse(): GoNode[] {
    const { nodes, stop } = this.#parseList(0);
    if (stop) throw new TemplateProblem(stop.position, `"${stop.word}" has nothing to belong to`);
    return nodes;
  }

  /** Parses nodes up to the `else` or `end` of the enclosing action, and leaves the reader after that word. */
  #parseList(depth: number): {
    nodes: GoNode[];
    stop?: { word: string; reader: GoExpressionReader; position: number };
  } {
    const nodes: GoNode[] = [];
    for (let part = this.#parts[this.#at++]; part; part = this.#parts[this.#at++]) {
      if ("text" in part) {
        nodes.push({ kind: "text", text: part.text });
        continue;
      }
      const { position } = part;
      if (depth > MAX_DEPTH) throw new TemplateProblem(position, "its actions are nested too deeply");
      const reader = new GoExpressionReader(part.action, position);
      const word = ["else", "end"].find((candidate) => reader.take(candidate));
      if (word !== undefined) return { nodes, stop: { word, reader, position } };
      nodes.push(this.#parseAction(reader, position, depth));
    }
    return { nodes };
  }

  #parseAction(reader: GoExpressionReader, position: number, depth: number): GoNode {
    for (const word of ["define", "template", "block", "break", "continue"]) {
      if (reader.take(word)) throw new TemplateProblem(position, `{{ ${word} }} is not supported`);
    }
    if (reader.take("if")) return this.#parseIf("if", reader, position, depth);
    if (reader.take("with")) return this.#parseIf("with", reader, position, depth);
    if (reader.take("range")) return this.#parseRange(reader, position, depth);
    const assignment = reader.takeAssignment();
    if (!assignment) return { kind: "print", value: reader.readAll(), position };
    const [name = "", ...more] = assignment.names;
    if (more.length > 0) throw new TemplateProblem(position, "only one variable can be set at a time");
    return { kind: "assign", name, value: reader.readAll(), position };
  }

  #parseIf(word: "if" | "with", reader: GoExpressionReader, position: number, depth: number): GoNode {
    const branches: GoBranch[] = [];
    const node = { kind: "if", branches, setsDot: word === "with" } as const;
    let condition = reader.readAll();
    let from = position;
    for (;;) {
      const { nodes, stop } = this.#parseList(depth + 1);
      branches.push({ condition, body: nodes, position: from });
      if (!stop) throw this.#notEnded(word, position);
      if (stop.word === "end") return { ...node, otherwise: [] };
      if (word === "with" || !stop.reader.take("if"))
        return { ...node, otherwise: this.#parseUpToEnd(word, position, depth) };
      condition = stop.reader.readAll();
      from = stop.position;
    }
  }

  #parseRange(reader: GoExpressionReader, position: number, depth: number): GoNode {
    const names = reader.takeAssignment()?.names ?? [];
    if (names.length > 2) throw new TemplateProblem(position, "a range has two variables at most");
    const list = reader.readAll();
    const { nodes: body, stop } = this.#parseList(depth + 1);
    if (!stop) throw this.#notEnded("range", position);
    if (stop.word === "else" && this.#parseUpToEnd("range", position, depth).length > 0)
      throw new TemplateProblem(position, "{{ else }} of a range is not supported");
    const item = names.at(-1);
    return { kind: "range", list, index: names.length === 2 ? names[0] : undefined, item, body, position };
  }

  #parseUpToEnd(word: string, position: number, depth: number): GoNode[] {
    const { nodes, stop } = this.#parseList(depth + 1);
    if (stop?.word !== "end") throw this.#notEnded(word, position);
    return nodes;
  }

  #notEnded(word: string, position: number): TemplateProblem {
    return new TemplateProblem(Math.min(position, this.#length), `{{ ${word} }} has no {{ end }}`);
  }
}

/** True if the nodes, or nested ones, set variables. */
export function setsVariables(nodes: readonly GoNode[]): boolean {
  return nodes.some((node) => node.kind === "assign" || childrenOf(node).some(setsVariables));
}

/** Returns the names of all fields that the nodes print or test. */
export function fieldsOf(nodes: readonly GoNode[]): readonly string[] {
  return nodes.flatMap((node) =>
    expressionsOf(node).flatMap(namesIn).concat(childrenOf(node).flatMap(fieldsOf)),
  );
}

/** Returns the nodes up to and including the first that prints .Response; each branch is cut separately. */
export function cutAfterResponse(nodes: readonly GoNode[]): readonly GoNode[] {
  return cut(nodes).nodes;
}

interface Cut {
  readonly nodes: readonly GoNode[];
  readonly isCut: boolean;
}

function cut(nodes: readonly GoNode[]): Cut {
  const before: GoNode[] = [];
  for (const node of nodes) {
    const printsResponse = node.kind === "print" && namesIn(node.value).includes("Response");
    const inner = cutWithin(node);
    before.push(inner.node);
    if (printsResponse || inner.isCut) return { nodes: before, isCut: true };
  }
  return { nodes: before, isCut: false };
}

function cutWithin(node: GoNode): { node: GoNode; isCut: boolean } {
  if (node.kind !== "if") return { node, isCut: false };
  const cuts = node.branches.map(({ body }) => cut(body));
  const otherwise = cut(node.otherwise);
  const branches = node.branches.map((branch, index) => ({
    ...branch,
    body: cuts[index]?.nodes ?? branch.body,
  }));
  return {
    node: { ...node, branches, otherwise: otherwise.nodes },
    isCut: otherwise.isCut || cuts.some(({ isCut }) => isCut),
  };
}

function childrenOf(node: GoNode): readonly (readonly GoNode[])[] {
  switch (node.kind) {
    case "if":
      return [...node.branches.map(({ body }) => body), node.otherwise];
    case "range":
      return [node.body];
    default:
      return [];
  }
}

function expressionsOf(node: GoNode): readonly GoExpression[] {
  switch (node.kind) {
    case "text":
      return [];
    case "if":
      return node.branches.map(({ condition }) => condition);
    case "range":
      return [node.list];
    default:
      return [node.value];
  }
}

function namesIn(expression: GoExpression): readonly string[] {
  if (expression.kind === "call") return expression.arguments.flatMap(namesIn);
  if (expression.kind !== "access") return [];
  const within = expression.base.kind === "value" ? namesIn(expression.base.value) : [];
  return [...within, ...expression.path];
}
