import { GrammarSyntaxError, GrammarTokenError } from "../schema-errors.ts";
import { ALL_CODE_POINTS, type CodePoints, codePoints, complementOf } from "../text/code-points.ts";

/** Part of a rule. Equal repetitions of one part are the same object, so that parts can be compared by identity. */
export type GrammarPart =
  | { readonly kind: "set"; readonly id: number; readonly set: CodePoints }
  | { readonly kind: "rule"; readonly id: number; readonly name: string }
  | { readonly kind: "group"; readonly id: number; readonly choices: GrammarChoices }
  | {
      readonly kind: "repeat";
      readonly id: number;
      readonly part: GrammarPart;
      readonly min: number;
      readonly max: number;
    };

/** Alternative sequences of parts. */
export type GrammarChoices = readonly (readonly GrammarPart[])[];

/** Parsed grammar. */
export class Grammar {
  readonly rules = new Map<string, GrammarChoices>();
  readonly #repeats = new Map<string, GrammarPart>();
  #nextId = 0;

  set(set: CodePoints): GrammarPart {
    return { kind: "set", id: this.#nextId++, set };
  }

  reference(name: string): GrammarPart {
    return { kind: "rule", id: this.#nextId++, name };
  }

  group(choices: GrammarChoices): GrammarPart {
    return { kind: "group", id: this.#nextId++, choices };
  }

  repeat(part: GrammarPart, min: number, max: number): GrammarPart {
    if (min === 1 && max === 1) return part;
    const key = `${part.id},${min},${max}`;
    const known = this.#repeats.get(key);
    if (known) return known;
    const made: GrammarPart = { kind: "repeat", id: this.#nextId++, part, min, max };
    this.#repeats.set(key, made);
    return made;
  }
}

/** Deepest nesting of groups, as in wasm/kernels/recursion.h. */
const MAX_DEPTH = 200;
const ESCAPES: Readonly<Record<string, string>> = {
  n: "\n",
  r: "\r",
  t: "\t",
  '"': '"',
  "\\": "\\",
  "[": "[",
  "]": "]",
  "-": "-",
};
const HEX_DIGITS: Readonly<Record<string, number>> = { x: 2, u: 4, U: 8 };

/**
 * Parses a GBNF grammar (llama.cpp's grammars/README.md).
 * @throws GrammarSyntaxError
 */
export function parseGbnf(source: string): Grammar {
  return new GbnfReader(source).read();
}

class GbnfReader {
  readonly #source: string;
  readonly #grammar = new Grammar();
  #at = 0;

  constructor(source: string) {
    this.#source = source;
  }

  read(): Grammar {
    for (this.#space(true); this.#at < this.#source.length; this.#space(true)) {
      const name = this.#match(/[a-zA-Z0-9-]+/y);
      if (name === undefined) throw this.#error("a rule's name");
      this.#space(false);
      if (this.#match(/::=/y) === undefined) throw this.#error('"::="');
      this.#space(true);
      this.#grammar.rules.set(name, this.#choices(0));
      if (this.#at < this.#source.length && this.#match(/[\r\n]/y) === undefined)
        throw this.#error("a part of the rule or the end of its line");
    }
    for (const name of this.#references) {
      if (!this.#grammar.rules.has(name)) throw missingRule(name);
    }
    if (!this.#grammar.rules.has("root")) throw missingRule("root");
    return this.#grammar;
  }

  readonly #references = new Set<string>();

  #choices(depth: number): GrammarChoices {
    if (depth > MAX_DEPTH) throw new GrammarSyntaxError("its groups are nested too deeply");
    const choices = [this.#sequence(depth)];
    while (this.#match(/\|/y) !== undefined) {
      this.#space(true);
      choices.push(this.#sequence(depth));
    }
    return choices;
  }

  #sequence(depth: number): GrammarPart[] {
    const parts: GrammarPart[] = [];
    for (;;) {
      const part = this.#part(depth);
      if (part === undefined) return parts;
      this.#space(depth > 0);
      const last = part.at(-1);
      if (last) parts.push(...part.slice(0, -1), this.#repeated(last, depth));
    }
  }

  /** Applies the repetition operators after a part, each to the result of the one before. */
  #repeated(part: GrammarPart, depth: number): GrammarPart {
    let repeated = part;
    for (let bounds = this.#repetition(); bounds; bounds = this.#repetition()) {
      repeated = this.#grammar.repeat(repeated, ...bounds);
      this.#space(depth > 0);
    }
    return repeated;
  }

  /** Parses one part; undefined at the end of a sequence. */
  #part(depth: number): GrammarPart[] | undefined {
    const grammar = this.#grammar;
    if (this.#match(/"/y) !== undefined) {
      const parts: GrammarPart[] = [];
      while (this.#match(/"/y) === undefined) {
        const point = this.#character();
        parts.push(grammar.set([point, point]));
      }
      // A repetition operator applies to the complete literal.
      return parts.length > 1 ? [grammar.group([parts])] : parts;
    }
    if (this.#match(/\[/y) !== undefined) return [this.#class()];
    if (this.#match(/\./y) !== undefined) return [grammar.set(ALL_CODE_POINTS)];
    if (this.#match(/\(/y) !== undefined) {
      this.#space(true);
      const choices = this.#choices(depth + 1);
      if (this.#match(/\)/y) === undefined) throw this.#error('")"');
      return [grammar.group(choices)];
    }
    if (this.#match(/!?</y) !== undefined) throw new GrammarTokenError("it names tokens");
    const name = this.#match(/[a-zA-Z0-9-]+/y);
    if (name === undefined) return undefined;
    this.#references.add(name);
    return [grammar.reference(name)];
  }

  #class(): GrammarPart {
    const isComplement = this.#match(/\^/y) !== undefined;
    const ranges: [number, number][] = [];
    while (this.#match(/\]/y) === undefined) {
      const first = this.#character();
      const isRange = this.#match(/-(?!\])/y) !== undefined;
      const last = isRange ? this.#character() : first;
      if (first <= last) ranges.push([first, last]);
    }
    const set = codePoints(ranges);
    return this.#grammar.set(isComplement ? complementOf(set) : set);
  }

  #character(): number {
    const point = this.#source.codePointAt(this.#at);
    if (point === undefined) throw this.#error("a character");
    const character = String.fromCodePoint(point);
    this.#at += character.length;
    if (character !== "\\") return point;
    const letter = this.#source[this.#at++] ?? "";
    const plain = ESCAPES[letter];
    if (plain !== undefined) return plain.codePointAt(0) ?? 0;
    const digits = this.#source.slice(this.#at, this.#at + (HEX_DIGITS[letter] ?? 0));
    if (!/^[\da-fA-F]+$/.test(digits)) throw this.#error("an escape that GBNF has");
    this.#at += digits.length;
    return Number.parseInt(digits, 16);
  }

  #repetition(): [min: number, max: number] | undefined {
    if (this.#match(/\*/y) !== undefined) return [0, Infinity];
    if (this.#match(/\+/y) !== undefined) return [1, Infinity];
    if (this.#match(/\?/y) !== undefined) return [0, 1];
    const text = this.#match(/\{\s*\d+\s*(?:,\s*(?:\d+\s*)?)?\}/y);
    if (text === undefined) return undefined;
    const [min = "", max] = text.slice(1, -1).split(",");
    if (max === undefined) return [Number(min), Number(min)];
    return [Number(min), max.trim() === "" ? Infinity : Number(max)];
  }

  #space(withLines: boolean): void {
    this.#match(withLines ? /(?:[ \t\r\n]|#[^\r\n]*)*/y : /(?:[ \t]|#[^\r\n]*)*/y);
  }

  #match(expression: RegExp): string | undefined {
    expression.lastIndex = this.#at;
    const found = expression.exec(this.#source)?.[0];
    this.#at += found?.length ?? 0;
    return found;
  }

  #error(wanted: string): GrammarSyntaxError {
    const lines = this.#source.slice(0, this.#at).split("\n");
    const column = (lines.at(-1)?.length ?? 0) + 1;
    return new GrammarSyntaxError(`it needs ${wanted} in line ${lines.length}, column ${column}`);
  }
}

function missingRule(name: string): GrammarSyntaxError {
  return new GrammarSyntaxError(`it has no rule named ${JSON.stringify(name.slice(0, 100))}`);
}

/**
 * Finds a left-recursive rule, which llama.cpp refuses; undefined if none is found. Recursion after a part that may be
 * empty is left to llama.cpp.
 */
export function leftRecursiveRule({ rules }: Grammar): string | undefined {
  const done = new Set<string>();
  const open = new Set<string>();
  // Iterative, because a chain of rules may be longer than the stack allows.
  const path: { readonly name: string; readonly left: Iterator<string> }[] = [];
  const enter = (name: string): void => {
    open.add(name);
    path.push({ name, left: firstRules(rules.get(name) ?? []).values() });
  };
  for (const start of rules.keys()) {
    if (!done.has(start)) enter(start);
    for (let rule = path.at(-1); rule; rule = path.at(-1)) {
      const next = rule.left.next();
      if (next.done) {
        path.pop();
        open.delete(rule.name);
        done.add(rule.name);
      } else if (open.has(next.value)) return next.value;
      else if (!done.has(next.value)) enter(next.value);
    }
  }
  return undefined;
}

/** Collects the rules with which choices begin. */
function firstRules(choices: GrammarChoices, names = new Set<string>()): Set<string> {
  for (const [first] of choices) {
    let part = first;
    while (part?.kind === "repeat") part = part.max === 0 ? undefined : part.part;
    if (part?.kind === "rule") names.add(part.name);
    if (part?.kind === "group") firstRules(part.choices, names);
  }
  return names;
}
