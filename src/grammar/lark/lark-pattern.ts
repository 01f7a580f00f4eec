import { type LarkGrammar, type LarkNode, parseLark } from "./lark-grammar.ts";
import {
  inBothCases,
  MAX_REPETITIONS,
  setPattern,
  RepetitionLimitError,
  toRegularPattern,
  UnenforceableError,
} from "./regular-pattern.ts";

/** Longest pattern, with every rule inlined wherever it is used. */
const MAX_PATTERN_LENGTH = 32 * 1024;

/** Deepest nesting of rules and terminals, which are processed recursively. */
export const MAX_NESTED_RULES = 200;

/** Name of the start rule. */
export const START_RULE = "start";

/**
 * Compiles a Lark grammar to a pattern without anchors.
 * @throws UnenforceableError for a recursive rule, or a grammar that is invalid, unsupported or too large
 */
export function larkPattern(definition: string): string {
  return new PatternWriter(parseLark(definition)).pattern();
}

class PatternWriter {
  readonly #terminals: TerminalPatterns;
  /** Pattern of ignored text between terminals. */
  readonly #between: string;
  readonly #written = new Map<string, string>();
  readonly #open = new Set<string>();

  constructor(grammar: LarkGrammar) {
    this.#terminals = new TerminalPatterns(grammar);
    this.#between = this.#terminals.ignoredPattern;
  }

  pattern(): string {
    return this.#between + this.#rule({ kind: "name", name: START_RULE });
  }

  /** Writes a part of a rule, with ignored text after each terminal. */
  #rule(node: LarkNode): string {
    if (node.kind === "name" && isRule(node.name)) {
      return writeOnce(node.name, this.#written, this.#open, () =>
        this.#rule(this.#terminals.definition(node.name)),
      );
    }
    return writeComposite(node, (part) => this.#rule(part)) ?? this.#terminals.of(node) + this.#between;
  }
}

/** Compiles the terminals of a grammar to patterns. */
export class TerminalPatterns {
  readonly #grammar: LarkGrammar;
  readonly #written = new Map<string, string>();
  readonly #open = new Set<string>();

  constructor(grammar: LarkGrammar) {
    this.#grammar = grammar;
  }

  /** Pattern of ignored text between terminals; empty if there is none. */
  get ignoredPattern(): string {
    const ignored = this.#grammar.ignored.map((node) => this.of(node));
    return ignored.length > 0 ? `(?:${ignored.join("|")})*` : "";
  }

  /** @throws UnenforceableError for a name that is unknown, recursive or a rule */
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
        return writeOnce(node.name, this.#written, this.#open, () => this.of(this.definition(node.name)));
      }
      default:
        return writeComposite(node, (part) => this.of(part)) ?? "";
    }
  }

  /** Returns the definition of a name. */
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

/** Writes a node with parts; undefined for one without. */
function writeComposite(node: LarkNode, write: (part: LarkNode) => string): string | undefined {
  if (node.kind === "sequence") return joined(node.parts, "", write);
  if (node.kind === "choice") return `(?:${joined(node.options, "|", write)})`;
  if (node.kind === "repeat") return `(?:${write(node.part)})${quantifier(node.min, node.max)}`;
  return undefined;
}

/** Writes a named node, or returns the pattern written before. */
function writeOnce(
  name: string,
  written: Map<string, string>,
  open: Set<string>,
  write: () => string,
): string {
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

/** True for names of rules, which are in lower case; names of terminals are in upper case. */
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

function quantifier(min: number, max: number): string {
  if (max < min) throw new UnenforceableError("has a repetition that ends before it begins");
  if (min > MAX_REPETITIONS || (max > MAX_REPETITIONS && max !== Infinity)) throw new RepetitionLimitError();
  if (max === Infinity) return min === 0 ? "*" : "+";
  return min === 0 && max === 1 ? "?" : `{${min},${max}}`;
}

/**
 * Joins patterns. @throws UnenforceableError as soon as they are too long, since nested rules may grow exponentially
 */
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

/** Terminals of Lark's module `common`, as regular expressions. */
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
