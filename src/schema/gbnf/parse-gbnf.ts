/** A part of a grammar. */
export type GbnfNode =
  /** One character: in one of the ranges, or in none of them. */
  | {
      readonly kind: "character";
      readonly ranges: readonly (readonly [number, number])[];
      readonly negated: boolean;
    }
  /** One token of the vocabulary, as it is written: `<[42]>` or `!<think>`. */
  | { readonly kind: "token"; readonly source: string }
  | { readonly kind: "rule"; readonly name: string }
  | { readonly kind: "sequence"; readonly parts: readonly GbnfNode[] }
  | { readonly kind: "choice"; readonly options: readonly GbnfNode[] }
  | { readonly kind: "repetition"; readonly part: GbnfNode; readonly least: number; readonly most: number };

/** A grammar's rules by name. */
export type GbnfRules = ReadonlyMap<string, GbnfNode>;

/** The text is not a grammar in GBNF. */
export class GbnfError extends Error {
  override readonly name = "GbnfError";
}

/** Deeper groups than any grammar has would only exhaust the stack. */
const MAX_DEPTH = 200;

const NAME = /[a-zA-Z0-9-]+/y;
const DEFINITION = /::=/y;
const TOKEN = /!?<[^>\n]*>/y;
const REPETITION = /\{\s*(\d{1,9})?\s*(,)?\s*(\d{1,9})?\s*\}/y;
const BLANKS = /(?:[ \t]|#[^\r\n]*)*/y;
const BLANKS_AND_LINES = /(?:[ \t\r\n]|#[^\r\n]*)*/y;
const ESCAPE = /\\(?:x([\da-fA-F]{2})|u([\da-fA-F]{4})|U([\da-fA-F]{8})|([trn"\\[\]]))/y;

const ESCAPED: Readonly<Record<string, number>> = { t: 9, r: 13, n: 10 };

const ANY: GbnfNode = { kind: "character", ranges: [], negated: true };

/**
 * Parses a grammar in GBNF, the format of llama.cpp (grammars/README.md there).
 * @throws GbnfError if it is not one, or has no rule "root"
 */
export function parseGbnf(text: string): GbnfRules {
  const rules = new GbnfParser(text).rules();
  if (!rules.has("root")) throw new GbnfError('it has no rule "root"');
  return rules;
}

class GbnfParser {
  readonly #text: string;
  #at = 0;

  constructor(text: string) {
    this.#text = text;
  }

  rules(): GbnfRules {
    const rules = new Map<string, GbnfNode>();
    this.#take(BLANKS_AND_LINES);
    while (this.#at < this.#text.length) {
      const name = this.#need(NAME, "the name of a rule")[0];
      this.#take(BLANKS);
      this.#need(DEFINITION, "::=");
      this.#take(BLANKS_AND_LINES);
      rules.set(name, this.#choice(0));
      if (this.#at < this.#text.length && !"\r\n".includes(this.#peek())) this.#fail("the end of the line");
      this.#take(BLANKS_AND_LINES);
    }
    return rules;
  }

  #choice(depth: number): GbnfNode {
    if (depth > MAX_DEPTH) throw new GbnfError("its groups are nested too deeply");
    const options = [this.#sequence(depth)];
    while (this.#peek() === "|") {
      this.#at += 1;
      this.#take(BLANKS_AND_LINES);
      options.push(this.#sequence(depth));
    }
    const [only] = options;
    return options.length === 1 && only ? only : { kind: "choice", options };
  }

  #sequence(depth: number): GbnfNode {
    const parts: GbnfNode[] = [];
    for (let part = this.#part(depth); part; part = this.#part(depth)) {
      this.#take(BLANKS);
      parts.push(this.#repeated(part));
      this.#take(depth > 0 ? BLANKS_AND_LINES : BLANKS);
    }
    const [only] = parts;
    return parts.length === 1 && only ? only : { kind: "sequence", parts };
  }

  #part(depth: number): GbnfNode | undefined {
    const next = this.#peek();
    if (next === '"') return this.#literal();
    if (next === "[") return this.#class();
    if (next === ".") {
      this.#at += 1;
      return ANY;
    }
    if (next === "(") {
      this.#at += 1;
      this.#take(BLANKS_AND_LINES);
      const group = this.#choice(depth + 1);
      if (this.#peek() !== ")") this.#fail(")");
      this.#at += 1;
      return group;
    }
    const token = this.#take(TOKEN);
    if (token) return { kind: "token", source: token[0] };
    const name = this.#take(NAME);
    return name ? { kind: "rule", name: name[0] } : undefined;
  }

  #repeated(part: GbnfNode): GbnfNode {
    const next = this.#peek();
    const simple =
      next === "*" ? [0, Infinity] : next === "+" ? [1, Infinity] : next === "?" ? [0, 1] : undefined;
    if (simple) {
      this.#at += 1;
      this.#take(BLANKS);
      return this.#repeated({ kind: "repetition", part, least: simple[0] ?? 0, most: simple[1] ?? 0 });
    }
    const counts = next === "{" ? this.#need(REPETITION, "a number of repetitions") : undefined;
    if (!counts) return part;
    const [, least, comma, most] = counts;
    this.#take(BLANKS);
    return this.#repeated({
      kind: "repetition",
      part,
      least: Number(least ?? 0),
      most: most !== undefined ? Number(most) : comma === undefined ? Number(least ?? 0) : Infinity,
    });
  }

  #literal(): GbnfNode {
    this.#at += 1;
    const parts: GbnfNode[] = [];
    while (this.#peek() !== '"') {
      const point = this.#character();
      parts.push({ kind: "character", ranges: [[point, point]], negated: false });
    }
    this.#at += 1;
    return { kind: "sequence", parts };
  }

  #class(): GbnfNode {
    this.#at += 1;
    const negated = this.#peek() === "^";
    if (negated) this.#at += 1;
    const ranges: [number, number][] = [];
    while (this.#peek() !== "]") {
      const from = this.#character();
      const isRange = this.#peek() === "-" && this.#text[this.#at + 1] !== "]";
      if (isRange) this.#at += 1;
      ranges.push([from, isRange ? this.#character() : from]);
    }
    this.#at += 1;
    return { kind: "character", ranges, negated };
  }

  #character(): number {
    if (this.#peek() === "\\") {
      const [, byte, short, long, letter = ""] = this.#need(ESCAPE, "an escape");
      const hex = byte ?? short ?? long;
      return hex === undefined ? (ESCAPED[letter] ?? letter.charCodeAt(0)) : Number.parseInt(hex, 16);
    }
    const point = this.#text.codePointAt(this.#at);
    if (point === undefined) return this.#fail("the end of a text or class");
    this.#at += point > 0xffff ? 2 : 1;
    return point;
  }

  #peek(): string {
    return this.#text[this.#at] ?? "";
  }

  #take(pattern: RegExp): RegExpExecArray | null {
    pattern.lastIndex = this.#at;
    const found = pattern.exec(this.#text);
    if (found) this.#at += found[0].length;
    return found;
  }

  #need(pattern: RegExp, what: string): RegExpExecArray {
    return this.#take(pattern) ?? this.#fail(what);
  }

  #fail(expected: string): never {
    throw new GbnfError(`it should have ${expected} at character ${this.#at}`);
  }
}
