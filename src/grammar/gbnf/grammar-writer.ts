import { SchemaTooComplexError } from "../schema-errors.ts";
import { type CodePoints, rangesOf } from "../text/code-points.ts";

/** Longest grammar, in characters: llama.cpp parses it in a few dozen milliseconds. */
export const MAX_GRAMMAR_LENGTH = 256 * 1024;

/** Longest rule name that is made from a hint. */
const MAX_HINT_LENGTH = 40;

/** Matches literals and character classes, which are skipped, and rule names. */
const NAMES = /"(?:\\.|[^"\\])*"|\[(?:\\.|[^\]\\])*\]|([a-zA-Z][a-zA-Z0-9-]*)/gs;

/** Collects the rules of a GBNF grammar. */
export class GrammarWriter {
  readonly #bodies = new Map<string, string>();
  readonly #nameOfBody = new Map<string, string>();
  /** Names in use; "root" is reserved for the grammar. */
  readonly #taken = new Set(["root"]);
  readonly #nextOfHint = new Map<string, number>();
  readonly #maxLength: number;
  #length = 0;

  /** @param maxLength characters of all rules together */
  constructor(maxLength: number = MAX_GRAMMAR_LENGTH) {
    this.#maxLength = maxLength;
  }

  /**
   * Adds a rule, or finds the one with the same body.
   * @param hint base of the rule's name
   * @returns the rule's name
   * @throws SchemaTooComplexError
   */
  rule(hint: string, body: string): string {
    const known = this.#nameOfBody.get(body);
    if (known !== undefined) return known;
    const name = this.reserve(hint);
    this.#nameOfBody.set(body, name);
    this.define(name, body);
    return name;
  }

  /** Reserves a name for a rule that is defined later, as recursive rules require. */
  reserve(hint: string): string {
    const base =
      hint
        .replaceAll(/[^a-zA-Z0-9]+/g, "-")
        .replaceAll(/^[-\d]+|-+$/g, "")
        .slice(0, MAX_HINT_LENGTH) || "rule";
    let name = base;
    for (let next = this.#nextOfHint.get(base) ?? 2; this.#taken.has(name); next += 1) {
      name = `${base}-${next}`;
      this.#nextOfHint.set(base, next + 1);
    }
    this.#taken.add(name);
    return name;
  }

  /**
   * Defines a rule with a reserved name.
   * @throws SchemaTooComplexError
   */
  define(name: string, body: string): void {
    this.#length += name.length + body.length + " ::= \n".length;
    if (this.#length > this.#maxLength)
      throw new SchemaTooComplexError(`its grammar would be longer than ${this.#maxLength} characters`);
    this.#bodies.set(name, body);
  }

  /**
   * Writes the grammar: the rules that the root reaches, the root first.
   * @param root name of the start rule
   */
  toString(root: string): string {
    const reached = new Set([root]);
    for (const name of reached) {
      for (const [, reference] of (this.#bodies.get(name) ?? "").matchAll(NAMES))
        if (reference !== undefined) reached.add(reference);
    }
    const lines = [...reached].map((name) => `${name} ::= ${this.#bodies.get(name) ?? '""'}\n`);
    return `root ::= ${root}\n${lines.join("")}`;
  }
}

/** Writes a character class, or a literal for a single character. */
export function gbnfClass(set: CodePoints): string {
  const [first, last] = set;
  if (set.length === 2 && first !== undefined && first === last)
    return gbnfLiteral(String.fromCodePoint(first));
  // The complement of everything matches nothing.
  if (first === undefined) return String.raw`[^\x00-\U0010FFFF]`;
  const members = rangesOf(set).map(([from, to]) => {
    if (from === to) return gbnfMember(from);
    return `${gbnfMember(from)}${to === from + 1 ? "" : "-"}${gbnfMember(to)}`;
  });
  return `[${members.join("")}]`;
}

/** Writes the operator of a repetition, which is the same in regular expressions. */
export function gbnfRepetition(min: number, max: number): string {
  if (max === Infinity) return min === 0 ? "*" : min === 1 ? "+" : `{${min},}`;
  if (min === 0 && max === 1) return "?";
  return min === max ? `{${min}}` : `{${min},${max}}`;
}

/** Writes a literal. */
export function gbnfLiteral(text: string): string {
  const characters = Array.from(text, (character) => {
    if (character === '"' || character === "\\") return `\\${character}`;
    const point = character.codePointAt(0) ?? 0;
    return isReadable(point) ? character : gbnfEscape(point);
  });
  return `"${characters.join("")}"`;
}

function gbnfMember(point: number): string {
  const character = String.fromCodePoint(point);
  if (isReadable(point) && !`[]^-\\"`.includes(character)) return character;
  return gbnfEscape(point);
}

/** True for printable ASCII; other characters are escaped. */
const isReadable = (point: number): boolean => point >= 0x20 && point < 0x7f;

function gbnfEscape(point: number): string {
  if (point === 10) return String.raw`\n`;
  if (point < 0x100) return `\\x${point.toString(16).toUpperCase().padStart(2, "0")}`;
  if (point < 0x10000) return `\\u${point.toString(16).toUpperCase().padStart(4, "0")}`;
  return `\\U${point.toString(16).toUpperCase().padStart(8, "0")}`;
}
