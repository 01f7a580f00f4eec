import { UnsupportedGrammarError } from "../schema-errors.ts";
import { DOT_POINTS, PatternCharacters, readClass, readEscape } from "./pattern-classes.ts";
import { type CodePoints, complementOf, oneCodePoint, WORD } from "./code-points.ts";
import type { Expression, Expressions } from "./expressions.ts";

/** Deepest nesting of groups. */
const MAX_DEPTH = 100;
/** Longest pattern of a grammar, in characters: patterns of JSON schemas have a few hundred at most. */
const MAX_LENGTH = 8_000;

type Adapt = (set: CodePoints) => CodePoints;

/** @throws UnsupportedGrammarError if a pattern is too long to become a grammar */
export function checkPatternLength(source: string): void {
  if (source.length > MAX_LENGTH)
    throw new UnsupportedGrammarError(`it is longer than ${MAX_LENGTH} characters`);
}

/**
 * Parses an ECMA-262 pattern, with the flag `u` or, if it is only valid without, by the older syntax; it always matches
 * code points.
 * @param adapt changes the characters that a class, an escape or a dot matches
 * @returns expression of the pattern at one position of a text; assertions become lookarounds
 * @throws UnsupportedGrammarError
 */
export function parsePattern(source: string, make: Expressions, adapt: Adapt = (set) => set): Expression {
  make.budget.spend(source.length);
  const isStrict = isValid(source, "u");
  if (!isStrict && !isValid(source, ""))
    throw new UnsupportedGrammarError("it is not a valid regular expression");
  return new PatternReader(source, make, isStrict, adapt).read();
}

/** Checks the syntax with RegExp, so that the reader can assume it is valid. */
function isValid(source: string, flags: string): boolean {
  try {
    return new RegExp(source, flags).source !== "";
  } catch {
    return false;
  }
}

class PatternReader {
  readonly #characters: PatternCharacters;
  readonly #make: Expressions;
  readonly #adapt: Adapt;

  constructor(source: string, make: Expressions, isStrict: boolean, adapt: Adapt) {
    this.#characters = new PatternCharacters(source, isStrict);
    this.#make = make;
    this.#adapt = adapt;
  }

  read(): Expression {
    return this.#choice(0);
  }

  #choice(depth: number): Expression {
    if (depth > MAX_DEPTH) throw new UnsupportedGrammarError("its groups are nested too deeply");
    const choices = [this.#sequence(depth)];
    while (this.#characters.take("|")) choices.push(this.#sequence(depth));
    return this.#make.either(choices);
  }

  #sequence(depth: number): Expression {
    const parts: Expression[] = [];
    for (let next = this.#characters.peek(); next !== undefined && next !== "|" && next !== ")";) {
      parts.push(this.#quantified(this.#atom(depth)));
      next = this.#characters.peek();
    }
    return this.#make.sequence(parts);
  }

  #atom(depth: number): Expression {
    const make = this.#make;
    const next = this.#characters.next();
    switch (next) {
      case "(":
        return this.#group(depth + 1);
      case "[":
        return make.set(this.#adapt(readClass(this.#characters)));
      case ".":
        return make.set(this.#adapt(DOT_POINTS));
      case "^":
        return make.behind(make.empty, false);
      case "$":
        return make.ahead(make.empty);
      case "\\":
        if (this.#characters.take("b")) return this.#wordEdge(false);
        if (this.#characters.take("B")) return this.#wordEdge(true);
        return make.set(this.#adapt(readEscape(this.#characters, false)));
      default:
        return make.set(oneCodePoint(next.codePointAt(0) ?? 0));
    }
  }

  #group(depth: number): Expression {
    const make = this.#make;
    const characters = this.#characters;
    let wrap: ((body: Expression) => Expression) | undefined;
    if (characters.take("?")) {
      const isBehind = characters.takeAll("<=") || characters.takeAll("<!");
      const kind = isBehind ? characters.before() : characters.next();
      if (isBehind) wrap = (body) => this.#behind(body, kind === "!");
      else if (kind === "=") wrap = (body) => make.ahead(make.follow(body, make.anything));
      else if (kind === "!") wrap = (body) => make.ahead(make.not(make.follow(body, make.anything)));
      else if (kind === "<") characters.skipPast(">");
      else if (kind !== ":") throw new UnsupportedGrammarError("it changes its flags within");
    }
    const body = this.#choice(depth);
    characters.take(")");
    return wrap ? wrap(body) : body;
  }

  #behind(body: Expression, isNegated: boolean): Expression {
    const make = this.#make;
    if (looksAhead(body)) throw new UnsupportedGrammarError("it looks ahead inside of a look-behind");
    return make.behind(make.follow(make.anything, body), isNegated);
  }

  /** Word boundary `\b`, or its negation `\B`. */
  #wordEdge(isNegated: boolean): Expression {
    const make = this.#make;
    const word = make.set(WORD);
    const before = make.follow(make.anything, word);
    const wordAhead = make.ahead(make.follow(word, make.anything));
    const other = make.follow(make.set(complementOf(WORD)), make.anything);
    const otherAhead = make.ahead(make.either([make.empty, other]));
    return make.either([
      make.follow(make.behind(before, false), isNegated ? wordAhead : otherAhead),
      make.follow(make.behind(before, true), isNegated ? otherAhead : wordAhead),
    ]);
  }

  #quantified(body: Expression): Expression {
    const bounds = this.#characters.takeQuantifier();
    if (!bounds) return body;
    this.#characters.take("?"); // a lazy quantifier matches the same texts
    return this.#make.repeat(body, ...bounds);
  }
}

function looksAhead(expression: Expression): boolean {
  if (!expression.looks) return false;
  switch (expression.kind) {
    case "ahead":
      return true;
    case "sequence":
      return looksAhead(expression.head) || looksAhead(expression.tail);
    case "either":
      return expression.parts.some(looksAhead);
    case "repeat":
      return looksAhead(expression.body);
    default:
      return false;
  }
}
