import { UnsupportedGrammarError } from "../schema-errors.ts";
import { codePoints, oneCodePoint } from "../text/code-points.ts";
import type { Expression, Expressions } from "../text/expressions.ts";
import {
  checkBounds,
  inBothCases,
  MAX_REPETITIONS,
  parseRegex,
  RepetitionLimitError,
} from "../text/parse-regex.ts";
import { type LarkGrammar, type LarkNode, parseLark } from "./lark-grammar.ts";

/** Deepest nesting of rules and terminals, which are processed recursively. */
export const MAX_NESTED_RULES = 200;

/** Name of the start rule. */
export const START_RULE = "start";

/**
 * Converts a Lark grammar without recursive rules to an expression.
 * @throws UnsupportedGrammarError for a recursive rule, or a grammar that is invalid, unsupported or too large
 */
export function larkExpression(definition: string, make: Expressions): Expression {
  const expressions = new LarkExpressions(parseLark(definition), make);
  return make.follow(expressions.ignored, expressions.ofRule({ kind: "name", name: START_RULE }));
}

/** Converts parts of a grammar to expressions. */
export class LarkExpressions {
  readonly #grammar: LarkGrammar;
  readonly #make: Expressions;
  /** Expression of ignored text between terminals. */
  readonly ignored: Expression;
  /** Expressions of rules and terminals, by name. */
  readonly #known = new Map<string, Expression>();
  /** Names whose definitions are being converted. */
  readonly #open = new Set<string>();

  constructor(grammar: LarkGrammar, make: Expressions) {
    this.#grammar = grammar;
    this.#make = make;
    const ignored = grammar.ignored.map((node) => this.of(node));
    this.ignored = make.repeat(make.either(ignored), 0, Infinity);
  }

  /**
   * Converts a part of a rule, with ignored text after each terminal.
   * @throws UnsupportedGrammarError for a name that is unknown or recursive
   */
  ofRule(node: LarkNode): Expression {
    if (node.kind === "name" && isRule(node.name))
      return this.#named(node.name, (definition) => this.ofRule(definition));
    return (
      composite(node, this.#make, (part) => this.ofRule(part)) ??
      this.#make.follow(this.of(node), this.ignored)
    );
  }

  /**
   * Converts a part of a terminal.
   * @throws UnsupportedGrammarError for a name that is unknown, recursive or a rule
   */
  of(node: LarkNode): Expression {
    const make = this.#make;
    switch (node.kind) {
      case "text": {
        const sets = Array.from(node.text, (character) => oneCodePoint(character.codePointAt(0) ?? 0));
        return make.sequence(sets.map((set) => make.set(node.ignoresCase ? inBothCases(set) : set)));
      }
      case "expression":
        return parseRegex(node.source, node.flags, make);
      case "range": {
        const [first, last] = [node.from.codePointAt(0), node.to.codePointAt(0)];
        if (first === undefined || last === undefined || last < first)
          throw new UnsupportedGrammarError("it has an empty range");
        return make.set(codePoints([[first, last]]));
      }
      case "name": {
        const { name } = node;
        if (isRule(name)) throw new UnsupportedGrammarError(`it has the rule ${name} in a terminal`);
        return this.#named(name, (definition) => this.of(definition));
      }
      default:
        return composite(node, make, (part) => this.of(part)) ?? make.empty;
    }
  }

  #named(name: string, convert: (definition: LarkNode) => Expression): Expression {
    const known = this.#known.get(name);
    if (known) return known;
    if (this.#open.has(name)) throw new UnsupportedGrammarError(`it is recursive: ${name} contains itself`);
    if (this.#open.size >= MAX_NESTED_RULES)
      throw new UnsupportedGrammarError("it has rules that are nested too deeply");
    this.#open.add(name);
    const expression = convert(this.definition(name));
    this.#open.delete(name);
    this.#known.set(name, expression);
    return expression;
  }

  /** Returns the definition of a name. */
  definition(name: string): LarkNode {
    const { definitions, imports } = this.#grammar;
    const own = definitions.get(name);
    if (own) return own;
    const common = COMMON_TERMINALS[imports.get(name) ?? ""];
    if (common !== undefined) return { kind: "expression", source: common, flags: "" };
    throw new UnsupportedGrammarError(
      imports.has(name) ? `it imports ${name}, which is not known` : `it does not define ${name}`,
    );
  }
}

/** Converts a node with parts; undefined for one without. */
function composite(
  node: LarkNode,
  make: Expressions,
  convert: (part: LarkNode) => Expression,
): Expression | undefined {
  if (node.kind === "sequence") return make.sequence(node.parts.map(convert));
  if (node.kind === "choice") return make.either(node.options.map(convert));
  if (node.kind !== "repeat") return undefined;
  const { min, max } = node;
  checkBounds(min, max);
  if (min > MAX_REPETITIONS || (max > MAX_REPETITIONS && max !== Infinity)) throw new RepetitionLimitError();
  return make.repeat(convert(node.part), min, max);
}

/** True for names of rules, which are in lower case; names of terminals are in upper case. */
export function isRule(name: string): boolean {
  return name === name.toLowerCase();
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
