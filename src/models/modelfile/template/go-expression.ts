/** A TEMPLATE cannot be parsed. chat-template.ts converts this to an error of the Modelfile. */
export class TemplateProblem extends Error {
  /** Character offset in the template. */
  readonly position: number;

  constructor(position: number, message: string) {
    super(message);
    this.position = position;
  }
}

/** An expression of Go's template language: https://pkg.go.dev/text/template#hdr-Arguments */
export type GoExpression =
  | { readonly kind: "literal"; readonly value: string | number | boolean }
  /** Field access such as `.Content`, `$.Messages` or `$message.Role`; the path may be empty. */
  | { readonly kind: "access"; readonly base: GoBase; readonly path: readonly string[] }
  | { readonly kind: "call"; readonly name: string; readonly arguments: readonly GoExpression[] };

type GoBase =
  /** `.`: the item of the innermost range, or the root. */
  | { readonly kind: "dot" }
  /** `$`: the root. */
  | { readonly kind: "root" }
  | { readonly kind: "variable"; readonly name: string }
  | { readonly kind: "value"; readonly value: GoExpression };

const TOKEN_KINDS = ["string", "number", "chain", "word", "mark"] as const;

interface Token {
  readonly kind: (typeof TOKEN_KINDS)[number];
  readonly text: string;
  readonly position: number;
  /** True if no space precedes it. */
  readonly isAttached: boolean;
}

/** Maximum nesting of parentheses; templates need three. */
const MAX_DEPTH = 32;

const TOKEN =
  /(?<string>"(?:[^"\\\n]|\\.)*"|`[^`]*`)|(?<number>-?\d+(?:\.\d+)?)|(?<chain>\$\w*(?:\.\w+)*|(?:\.[A-Za-z_]\w*)+|\.)|(?<word>[A-Za-z_]\w*)|(?<mark>:=|[=|(),])/y;

/** Parses the inside of one action, from left to right. */
export class GoExpressionReader {
  readonly #tokens: readonly Token[];
  readonly #end: number;
  #at = 0;
  #depth = 0;

  /** @param position - offset of the text in its template */
  constructor(text: string, position: number) {
    this.#tokens = tokenize(text, position);
    this.#end = position + text.length;
  }

  get isDone(): boolean {
    return this.#at === this.#tokens.length;
  }

  get position(): number {
    return this.#tokens[this.#at]?.position ?? this.#end;
  }

  /** Consumes the next token if it is this word or mark. */
  take(text: string): boolean {
    const token = this.#tokens[this.#at];
    if (token?.text !== text || (token.kind !== "word" && token.kind !== "mark")) return false;
    this.#at++;
    return true;
  }

  /** Consumes `$name :=`, `$name =` or `$one, $two :=`; otherwise returns undefined and consumes nothing. */
  takeAssignment(): { names: readonly string[] } | undefined {
    const from = this.#at;
    const names: string[] = [];
    do {
      const token = this.#tokens[this.#at++];
      if (token?.kind !== "chain" || !/^\$\w+$/.test(token.text)) break;
      names.push(token.text.slice(1));
      if (this.take(":=") || this.take("=")) return { names };
    } while (this.take(","));
    this.#at = from;
    return undefined;
  }

  /** Parses a pipeline up to the end of the text. */
  readAll(): GoExpression {
    const expression = this.#readPipeline();
    if (!this.isDone) throw new TemplateProblem(this.position, `unexpected ${this.#quotedToken()}`);
    return expression;
  }

  /** In `value | function argument`, the value becomes the function's last argument. */
  #readPipeline(): GoExpression {
    let expression = this.#readCommand();
    while (this.take("|")) {
      const position = this.position;
      const next = this.#readCommand();
      if (next.kind !== "call") throw new TemplateProblem(position, "a function must follow |");
      expression = { ...next, arguments: [...next.arguments, expression] };
    }
    return expression;
  }

  #readCommand(): GoExpression {
    const token = this.#tokens[this.#at];
    if (token?.kind !== "word" || isBoolean(token)) return this.#readOperand();
    this.#at++;
    const operands: GoExpression[] = [];
    while (!this.isDone && !this.#startsWith("|") && !this.#startsWith(")"))
      operands.push(this.#readOperand());
    return { kind: "call", name: token.text, arguments: operands };
  }

  #readOperand(): GoExpression {
    const token = this.#tokens[this.#at];
    if (!token) throw new TemplateProblem(this.#end, "something is missing at its end");
    this.#at++;
    switch (token.kind) {
      case "string":
        return { kind: "literal", value: readString(token) };
      case "number":
        return { kind: "literal", value: Number(token.text) };
      case "chain":
        return readChain(token.text);
      case "word":
        if (isBoolean(token)) return { kind: "literal", value: token.text === "true" };
        throw new TemplateProblem(token.position, `${token.text} with its arguments needs parentheses here`);
      default:
        if (token.text === "(") return this.#readBrackets(token);
        throw new TemplateProblem(token.position, `unexpected ${token.text}`);
    }
  }

  #readBrackets(opening: Token): GoExpression {
    if (++this.#depth > MAX_DEPTH)
      throw new TemplateProblem(opening.position, "parentheses are nested too deeply");
    const value = this.#readPipeline();
    if (!this.take(")")) throw new TemplateProblem(opening.position, "a parenthesis is not closed");
    this.#depth--;
    const suffix = this.#tokens[this.#at];
    if (suffix?.kind !== "chain" || !suffix.isAttached || !suffix.text.startsWith(".")) return value;
    this.#at++;
    return { kind: "access", base: { kind: "value", value }, path: suffix.text.slice(1).split(".") };
  }

  #startsWith(mark: string): boolean {
    const token = this.#tokens[this.#at];
    return token?.kind === "mark" && token.text === mark;
  }

  #quotedToken(): string {
    return JSON.stringify(this.#tokens[this.#at]?.text.slice(0, 40) ?? "");
  }
}

function tokenize(text: string, position: number): Token[] {
  const tokens: Token[] = [];
  let at = 0;
  while (at < text.length) {
    const space = /\s*/y;
    space.lastIndex = at;
    const spaces = space.exec(text)?.[0].length ?? 0;
    at += spaces;
    if (at === text.length) break;
    TOKEN.lastIndex = at;
    const match = TOKEN.exec(text);
    const kind = TOKEN_KINDS.find((candidate) => match?.groups?.[candidate] !== undefined);
    if (!match || kind === undefined) {
      throw new TemplateProblem(position + at, `${JSON.stringify(text.slice(at, at + 20))} cannot be read`);
    }
    tokens.push({ kind, text: match[0], position: position + at, isAttached: spaces === 0 });
    at += match[0].length;
  }
  return tokens;
}

function isBoolean({ text }: Token): boolean {
  return text === "true" || text === "false";
}

function readString({ text, position }: Token): string {
  if (text.startsWith("`")) return text.slice(1, -1);
  try {
    return String(JSON.parse(text));
  } catch {
    throw new TemplateProblem(position, `the escapes of ${text.slice(0, 40)} cannot be read`);
  }
}

function readChain(text: string): GoExpression {
  const [first = "", ...path] = text.split(".");
  if (first === "$") return { kind: "access", base: { kind: "root" }, path };
  if (first !== "") return { kind: "access", base: { kind: "variable", name: first.slice(1) }, path };
  return { kind: "access", base: { kind: "dot" }, path: path.filter((name) => name !== "") };
}
