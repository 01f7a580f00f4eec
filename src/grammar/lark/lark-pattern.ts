import { type LarkGrammar, type LarkNode, parseLark } from "./lark-grammar.ts";
import {
  inBothCases,
  MAX_REPETITIONS,
  setPattern,
  TooOftenError,
  toRegularPattern,
  UnenforceableError,
} from "./regular-pattern.ts";

/** Longest pattern: every rule is written out wherever it is used, and the engine has to convert and to follow it. */
const MAX_PATTERN_LENGTH = 32 * 1024;

/** Rules and terminals within each other: they are followed by recursion. */
export const MAX_NESTED_RULES = 200;

/** The rule that the whole text follows. */
export const START = "start";

/**
 * The texts of a Lark grammar as a pattern without anchors.
 * @throws UnenforceableError when a rule contains itself, or when the grammar is not understood or too large
 */
export function larkPattern(definition: string): string {
  return new PatternWriter(parseLark(definition)).pattern();
}

class PatternWriter {
  readonly #terminals: TerminalPatterns;
  /** What may stand between terminals. */
  readonly #between: string;
  readonly #written = new Map<string, string>();
  readonly #open = new Set<string>();

  constructor(grammar: LarkGrammar) {
    this.#terminals = new TerminalPatterns(grammar);
    this.#between = this.#terminals.between;
  }

  pattern(): string {
    return this.#between + this.#rule({ kind: "name", name: START });
  }

  /** A part of a rule: what is ignored may follow each terminal. */
  #rule(node: LarkNode): string {
    if (node.kind === "name" && isRule(node.name)) {
      return once(node.name, this.#written, this.#open, () =>
        this.#rule(this.#terminals.definition(node.name)),
      );
    }
    return composed(node, (part) => this.#rule(part)) ?? this.#terminals.of(node) + this.#between;
  }
}

/** The texts of a grammar's terminals, as patterns. */
export class TerminalPatterns {
  readonly #grammar: LarkGrammar;
  readonly #written = new Map<string, string>();
  readonly #open = new Set<string>();

  constructor(grammar: LarkGrammar) {
    this.#grammar = grammar;
  }

  /** All that may stand between two terminals. */
  get between(): string {
    const ignored = this.#grammar.ignored.map((node) => this.of(node));
    return ignored.length > 0 ? `(?:${ignored.join("|")})*` : "";
  }

  /** @throws UnenforceableError for what is not known, contains itself or is a rule */
  of(node: LarkNode): string {
    switch (node.kind) {
      case "text":
        return Array.from(node.text, (character) => characterPattern(character, node.ignoresCase)).join("");
      case "expression":
        return toRegularPattern(node.source, node.flags);
      case "range":
        return rangePattern(node.from, node.to);
      case "name": {
        if (isRule(node.name)) throw new UnenforceableError(`has the rule ${node.name} in a terminal`);
        return once(node.name, this.#written, this.#open, () => this.of(this.definition(node.name)));
      }
      default:
        return composed(node, (part) => this.of(part)) ?? "";
    }
  }

  /** What a name stands for. */
  definition(name: string): LarkNode {
    const { definitions, imports } = this.#grammar;
    const own = definitions.get(name);
    if (own) return own;
    const common = COMMON_TERMINALS[imports.get(name) ?? ""];
    if (common !== undefined) return { kind: "expression", source: common, flags: "" };
    throw new UnenforceableError(
      imports.has(name) ? `imports ${name}, which is not known` : `does not define ${name}`,
    );
  }
}

/** Undefined for a node without parts. */
function composed(node: LarkNode, write: (part: LarkNode) => string): string | undefined {
  if (node.kind === "sequence") return joined(node.parts, "", write);
  if (node.kind === "choice") return `(?:${joined(node.options, "|", write)})`;
  if (node.kind === "repeat") return `(?:${write(node.part)})${quantifier(node.least, node.most)}`;
  return undefined;
}

/** Writes what has a name, unless it is written already. */
function once(name: string, written: Map<string, string>, open: Set<string>, write: () => string): string {
  const known = written.get(name);
  if (known !== undefined) return known;
  if (open.has(name)) throw new UnenforceableError(`is recursive: ${name} contains itself`);
  if (open.size >= MAX_NESTED_RULES) throw new UnenforceableError("has rules that are nested too deeply");
  open.add(name);
  const pattern = write();
  open.delete(name);
  written.set(name, pattern);
  return pattern;
}

/** Names of rules are in lower case, those of terminals in upper case. */
export function isRule(name: string): boolean {
  return name === name.toLowerCase();
}

function characterPattern(character: string, ignoresCase: boolean): string {
  const point = character.codePointAt(0) ?? 0;
  return setPattern(ignoresCase ? inBothCases([[point, point]]) : [[point, point]]);
}

function rangePattern(from: string, to: string): string {
  const [first, last] = [from.codePointAt(0), to.codePointAt(0)];
  if (first === undefined || last === undefined || last < first)
    throw new UnenforceableError("has an empty range");
  return setPattern([[first, last]]);
}

function quantifier(least: number, most: number): string {
  if (most < least) throw new UnenforceableError("has a repetition that ends before it begins");
  if (least > MAX_REPETITIONS || (most > MAX_REPETITIONS && most !== Infinity)) throw new TooOftenError();
  if (most === Infinity) return least === 0 ? "*" : "+";
  return least === 0 && most === 1 ? "?" : `{${least},${most}}`;
}

/** @throws UnenforceableError as soon as the pattern is too long: rules that use each other twice double it each time */
function joined(nodes: readonly LarkNode[], separator: string, write: (node: LarkNode) => string): string {
  let pattern = "";
  for (const [at, node] of nodes.entries()) {
    pattern += (at === 0 ? "" : separator) + write(node);
    if (pattern.length > MAX_PATTERN_LENGTH) {
      throw new UnenforceableError("is too large when its rules are written out");
    }
  }
  return pattern;
}

const DIGIT = "[0-9]";
const LETTER = "[A-Za-z]";
const INT = `${DIGIT}+`;
const DECIMAL = String.raw`(?:${INT}\.(?:${INT})?|\.${INT})`;
const FLOAT = `(?:${INT}[eE][+-]?${INT}|${DECIMAL}(?:[eE][+-]?${INT})?)`;
const NUMBER = `(?:${FLOAT}|${INT})`;

/** The terminals that a Lark grammar imports from `common`, as regular expressions. */
const COMMON_TERMINALS: Readonly<Record<string, string>> = {
  DIGIT,
  HEXDIGIT: "[0-9A-Fa-f]",
  INT,
  SIGNED_INT: `[+-]?${INT}`,
  DECIMAL,
  FLOAT,
  SIGNED_FLOAT: `[+-]?${FLOAT}`,
  NUMBER,
  SIGNED_NUMBER: `[+-]?${NUMBER}`,
  ESCAPED_STRING: String.raw`"(?:[^"\\\n]|\\[^\n])*"`,
  LCASE_LETTER: "[a-z]",
  UCASE_LETTER: "[A-Z]",
  LETTER,
  WORD: `${LETTER}+`,
  CNAME: "[A-Za-z_][A-Za-z0-9_]*",
  WS_INLINE: "[ \\t]+",
  WS: "[ \\t\\r\\n]+",
  CR: "\\r",
  LF: "\\n",
  NEWLINE: "(?:\\r?\\n)+",
  SH_COMMENT: "#[^\\n]*",
  CPP_COMMENT: "//[^\\n]*",
};
