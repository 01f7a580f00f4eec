import { UnsupportedGrammarError } from "../schema-errors.ts";

/** Node of a rule or terminal. */
export type LarkNode =
  | { readonly kind: "text"; readonly text: string; readonly ignoresCase: boolean }
  | { readonly kind: "expression"; readonly source: string; readonly flags: string }
  | { readonly kind: "range"; readonly from: string; readonly to: string }
  | { readonly kind: "name"; readonly name: string }
  | { readonly kind: "sequence"; readonly parts: readonly LarkNode[] }
  | { readonly kind: "choice"; readonly options: readonly LarkNode[] }
  | { readonly kind: "repeat"; readonly part: LarkNode; readonly min: number; readonly max: number };

export interface LarkGrammar {
  /** Rules in lower case and terminals in upper case, by name. */
  readonly definitions: ReadonlyMap<string, LarkNode>;
  /** Local names of imported common terminals: `%import common.INT -> NUMBER`. */
  readonly imports: ReadonlyMap<string, string>;
  readonly ignored: readonly LarkNode[];
}

type TokenKind = "start" | "directive" | "name" | "text" | "expression" | "number" | "mark";

interface Token {
  readonly kind: TokenKind;
  readonly text: string;
}

/** Matches the beginning of a definition at the beginning of a line: modifiers, name, priority, colon. */
const START = /(?:^|\n)[ \t]*[?!]{0,2}(_*[a-zA-Z]\w*)(?:\.-?\d+)?[ \t]*:/y;
const TOKENS: readonly (readonly [TokenKind | undefined, RegExp])[] = [
  ["start", START],
  [undefined, /[^\S\n]+|\n|(?:\/\/|#)[^\n]*/y],
  ["directive", /%import[^\n]*|%\w+/y],
  ["name", /_*[a-zA-Z]\w*/y],
  ["text", /"(?:[^"\\\n]|\\.)*"i?/y],
  ["expression", /\/(?!\/)(?:[^/\\\n]|\\.)+\/[imslux]*/y],
  ["number", /\d+/y],
  ["mark", /\.\.|->|[|()[\]*+?~]/y],
];

/** Deepest nesting of groups. */
const MAX_DEPTH = 50;

/**
 * Parses a Lark grammar (https://lark-parser.readthedocs.io/en/stable/grammar.html), without templates, `%declare`,
 * `%override`, `%extend`, and imports from other modules than `common`.
 * @throws UnsupportedGrammarError for invalid or unsupported syntax
 */
export function parseLark(text: string): LarkGrammar {
  return new LarkParser(tokensOf(text)).grammar();
}

function tokensOf(text: string): Token[] {
  const tokens: Token[] = [];
  for (let at = 0; at < text.length;) {
    const found = nextToken(text, at);
    if (!found) {
      const line = text.slice(0, at).split("\n").length;
      throw new UnsupportedGrammarError(`it has something in line ${line} that is not understood`);
    }
    if (found.kind) tokens.push({ kind: found.kind, text: found.text });
    at = found.end;
  }
  return tokens;
}

function nextToken(
  text: string,
  at: number,
): { kind: TokenKind | undefined; text: string; end: number } | undefined {
  for (const [kind, pattern] of TOKENS) {
    pattern.lastIndex = at;
    const found = pattern.exec(text);
    if (found) return { kind, text: found[1] ?? found[0], end: pattern.lastIndex };
  }
  return undefined;
}

class LarkParser {
  readonly #tokens: readonly Token[];
  #at = 0;

  constructor(tokens: readonly Token[]) {
    this.#tokens = tokens;
  }

  grammar(): LarkGrammar {
    const definitions = new Map<string, LarkNode>();
    const imports = new Map<string, string>();
    const ignored: LarkNode[] = [];
    for (let token = this.#next(); token; token = this.#next()) {
      if (token.kind === "start") definitions.set(token.text, this.#choice(0));
      else if (token.text === "%ignore") ignored.push(this.#choice(0));
      else if (token.text.startsWith("%import"))
        for (const [name, from] of importsOf(token.text)) imports.set(name, from);
      else throw new UnsupportedGrammarError(`it has ${token.text} where a definition should begin`);
    }
    return { definitions, imports, ignored };
  }

  #choice(depth: number): LarkNode {
    if (depth > MAX_DEPTH) throw new UnsupportedGrammarError("it is nested too deeply");
    const options = [this.#sequence(depth)];
    while (this.#take("|")) options.push(this.#sequence(depth));
    const [only] = options;
    return only && options.length === 1 ? only : { kind: "choice", options };
  }

  #sequence(depth: number): LarkNode {
    const parts: LarkNode[] = [];
    for (let part = this.#repeated(depth); part; part = this.#repeated(depth)) parts.push(part);
    // An alias only names a node of the parse tree.
    if (this.#take("->") && this.#next()?.kind !== "name")
      throw new UnsupportedGrammarError("it has an alias without a name");
    const [only] = parts;
    return only && parts.length === 1 ? only : { kind: "sequence", parts };
  }

  #repeated(depth: number): LarkNode | undefined {
    const part = this.#atom(depth);
    if (!part) return undefined;
    if (this.#take("*")) return { kind: "repeat", part, min: 0, max: Infinity };
    if (this.#take("+")) return { kind: "repeat", part, min: 1, max: Infinity };
    if (this.#take("?")) return { kind: "repeat", part, min: 0, max: 1 };
    if (!this.#take("~")) return part;
    const min = this.#number();
    return { kind: "repeat", part, min, max: this.#take("..") ? this.#number() : min };
  }

  /** Parses an atom; undefined at the end of a sequence. */
  #atom(depth: number): LarkNode | undefined {
    const token = this.#tokens[this.#at];
    if (!token || !["name", "text", "expression"].includes(token.kind)) {
      if (this.#take("(")) return this.#closed(this.#choice(depth + 1), ")");
      if (!this.#take("[")) return undefined;
      return { kind: "repeat", part: this.#closed(this.#choice(depth + 1), "]"), min: 0, max: 1 };
    }
    this.#at += 1;
    if (token.kind === "name") return { kind: "name", name: token.text };
    if (token.kind === "expression") {
      const end = token.text.lastIndexOf("/");
      return { kind: "expression", source: token.text.slice(1, end), flags: token.text.slice(end + 1) };
    }
    const text = unquoted(token.text);
    if (!this.#take("..")) return { kind: "text", text, ignoresCase: token.text.endsWith("i") };
    const to = this.#next();
    if (to?.kind !== "text") throw new UnsupportedGrammarError("it has a range without an end");
    return { kind: "range", from: text, to: unquoted(to.text) };
  }

  #closed(node: LarkNode, mark: string): LarkNode {
    if (this.#take(mark)) return node;
    throw new UnsupportedGrammarError(`it has a group without its ${mark}`);
  }

  #number(): number {
    const token = this.#next();
    if (token?.kind !== "number") throw new UnsupportedGrammarError("it has ~ without a number");
    return Number(token.text);
  }

  #next(): Token | undefined {
    return this.#tokens[this.#at++];
  }

  #take(mark: string): boolean {
    const token = this.#tokens[this.#at];
    if (token?.kind !== "mark" || token.text !== mark) return false;
    this.#at += 1;
    return true;
  }
}

/** Parses `%import common.INT -> NUMBER` or `%import common (INT, WS)` to local and imported names. */
function importsOf(directive: string): [name: string, from: string][] {
  const [, from, alias] =
    /^%import\s+common\.([A-Z_]+)(?:\s*->\s*(\w+))?\s*(?:(?:\/\/|#).*)?$/.exec(directive) ?? [];
  if (from !== undefined) return [[alias ?? from, from]];
  const [, several] = /^%import\s+common\s*\(([A-Z_,\s]+)\)\s*(?:(?:\/\/|#).*)?$/.exec(directive) ?? [];
  if (several === undefined)
    throw new UnsupportedGrammarError("it imports something else than terminals of common");
  return several.split(",").map((name) => [name.trim(), name.trim()]);
}

const ESCAPES: Readonly<Record<string, string>> = { n: "\n", t: "\t", r: "\r", f: "\f", v: "\v", 0: "\0" };

function unquoted(text: string): string {
  return text
    .slice(1, text.lastIndexOf('"'))
    .replaceAll(
      /\\(?:x([\dA-Fa-f]{2})|u([\dA-Fa-f]{4})|(.))/gs,
      (_, short?: string, long?: string, letter = "") => {
        const hex = short ?? long;
        return hex === undefined
          ? (ESCAPES[letter] ?? letter)
          : String.fromCodePoint(Number.parseInt(hex, 16));
      },
    );
}
