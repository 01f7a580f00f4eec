import type { WorkBudget } from "../schema-errors.ts";
import { type Automaton, toAutomaton } from "./automaton.ts";
import type { CodePoints } from "./code-points.ts";
import { Derivatives } from "./derivatives.ts";
import { type Expression, Expressions } from "./expressions.ts";
import { formatPattern } from "./formats.ts";
import { parsePattern } from "./parse-pattern.ts";

const expressionsOf = new WeakMap<WorkBudget, Expressions>();

/**
 * Regular set of texts. Sets of one compilation share its {@link WorkBudget}; slow methods throw SchemaTooComplexError
 * when it is exhausted.
 */
export class TextSet {
  /** Expression of the texts. */
  readonly expression: Expression;
  readonly #make: Expressions;
  #automaton: Automaton | undefined;
  #derivatives: Derivatives | undefined;

  private constructor(make: Expressions, expression: Expression) {
    this.#make = make;
    this.expression = expression;
  }

  static #of(budget: WorkBudget, build: (make: Expressions) => Expression): TextSet {
    const make = expressionsFor(budget);
    return new TextSet(make, build(make));
  }

  /** Set of all texts. */
  static any(budget: WorkBudget): TextSet {
    return TextSet.#of(budget, (make) => make.anything);
  }

  /** Set of the texts that an expression matches completely. */
  static of(expression: Expression, budget: WorkBudget): TextSet {
    return TextSet.#of(budget, (make) => wholeText(expression, make));
  }

  static oneOf(texts: readonly string[], budget: WorkBudget): TextSet {
    return TextSet.#of(budget, (make) => make.either(texts.map((text) => make.literal(text))));
  }

  /**
   * Set of the texts in which an ECMA-262 pattern is found.
   * @param adapt changes the characters that a part of the pattern matches
   * @throws UnsupportedGrammarError if the pattern is not regular
   */
  static pattern(source: string, budget: WorkBudget, adapt?: (set: CodePoints) => CodePoints): TextSet {
    return TextSet.#of(budget, (make) => textsContaining(parsePattern(source, make, adapt), make));
  }

  /** Set of the texts with a number of code points. */
  static lengthBetween(min: number, max: number, budget: WorkBudget): TextSet {
    return TextSet.#of(budget, (make) => (min > max ? make.nothing : make.repeat(make.anyPoint, min, max)));
  }

  /**
   * Set of the texts of a JSON Schema format: all, or common ones that every validator accepts.
   * @returns undefined for an unknown format
   */
  static format(name: string, budget: WorkBudget): TextSet | undefined {
    const source = formatPattern(name);
    return source === undefined ? undefined : TextSet.pattern(source, budget);
  }

  and(other: TextSet): TextSet {
    return new TextSet(this.#make, this.#make.both([this.expression, other.expression]));
  }

  or(other: TextSet): TextSet {
    return new TextSet(this.#make, this.#make.either([this.expression, other.expression]));
  }

  not(): TextSet {
    return new TextSet(this.#make, this.#make.not(this.expression));
  }

  /** True if the set is known to contain every text. */
  get isAny(): boolean {
    return this.expression === this.#make.anything;
  }

  /** True if the set has no text without lone surrogates. */
  isEmpty(): boolean {
    if (this.expression.kind === "nothing") return true;
    if (this.expression.isPlain) return false;
    return this.automaton().length === 0;
  }

  /** True if the set contains a text. Takes time linear in its length. */
  has(text: string): boolean {
    this.#derivatives ??= new Derivatives(this.#make, this.expression);
    let position = this.#derivatives.start;
    for (const character of text) position = this.#derivatives.after(position, character.codePointAt(0) ?? 0);
    return this.#derivatives.mayEnd(position);
  }

  /**
   * Returns the minimal automaton.
   * @throws SchemaTooComplexError
   */
  automaton(): Automaton {
    this.#automaton ??= toAutomaton(this.#make, this.expression);
    return this.#automaton;
  }
}

/** Returns the factory of expressions that belongs to a budget. */
export function expressionsFor(budget: WorkBudget): Expressions {
  const known = expressionsOf.get(budget);
  if (known) return known;
  const made = new Expressions(budget);
  expressionsOf.set(budget, made);
  return made;
}

type Place = "start" | "inside" | "unknown";

/** Returns the texts that contain a match of a pattern. */
function textsContaining(pattern: Expression, make: Expressions): Expression {
  const { anything } = make;
  if (pattern.behinds.length === 0) return wholeText(make.sequence([anything, pattern, anything]), make);
  const later = resolveBehind(pattern, "inside", make);
  const atStart = make.follow(resolveBehind(pattern, "start", make), anything);
  const further = make.sequence([make.anyPoint, anything, later, anything]);
  return make.either([wholeText(atStart, make), wholeText(further, make)]);
}

/** Replaces lookbehinds whose value is known. */
function resolveBehind(expression: Expression, place: Place, make: Expressions): Expression {
  if (expression.behinds.length === 0 || place === "unknown") return expression;
  switch (expression.kind) {
    case "behind": {
      if (place === "inside" && expression.before !== make.empty) return expression;
      const isTrue = place === "start" ? expression.before.matchesEmpty : false;
      if (isTrue === undefined) return expression;
      return isTrue === expression.isNegated ? make.nothing : make.empty;
    }
    case "sequence": {
      const parts: Expression[] = [];
      let [at, here]: [Expression, Place] = [expression, place];
      for (; at.kind === "sequence"; at = at.tail) {
        const part = resolveBehind(at.head, here, make);
        parts.push(part);
        here = placeAfter(part, here);
      }
      return make.sequence([...parts, resolveBehind(at, here, make)]);
    }
    case "either":
      return make.either(expression.parts.map((part) => resolveBehind(part, place, make)));
    case "repeat":
      if (place !== "inside") return expression;
      return make.repeat(resolveBehind(expression.body, place, make), expression.min, expression.max);
    case "not":
      return make.not(resolveBehind(expression.body, place, make));
    case "ahead":
      return make.ahead(resolveBehind(expression.rest, place, make));
    default:
      return expression;
  }
}

function placeAfter(part: Expression, place: Place): Place {
  if (place === "inside" || takesSomething(part)) return "inside";
  const isWithoutLength = part.kind === "empty" || part.kind === "ahead" || part.kind === "behind";
  return isWithoutLength ? place : "unknown";
}

function takesSomething(part: Expression): boolean {
  if (part.kind === "sequence") return takesSomething(part.head) || takesSomething(part.tail);
  if (part.kind === "either") return part.parts.every(takesSomething);
  if (part.kind === "repeat") return part.min > 0 && takesSomething(part.body);
  return part.kind === "set";
}

/**
 * Converts lookaheads of an expression for complete texts to intersections: `(?=a)b` are the texts that begin with an a
 * and are a b. Lookaheads in repetitions remain.
 */
function wholeText(expression: Expression, make: Expressions): Expression {
  if (!expression.looks) return expression;
  make.budget.spend();
  switch (expression.kind) {
    case "ahead":
      return make.both([wholeText(expression.rest, make), make.empty]);
    case "either":
      return make.either(expression.parts.map((part) => wholeText(part, make)));
    case "not":
      return make.not(wholeText(expression.body, make));
    case "both":
      return make.both(expression.parts.map((part) => wholeText(part, make)));
    case "sequence": {
      const heads: Expression[] = [];
      let at: Expression = expression;
      for (; at.kind === "sequence"; at = at.tail) heads.push(at.head);
      return heads.reduceRight((tail, head) => wholeSequence(head, tail, make), wholeText(at, make));
    }
    default:
      return expression;
  }
}

function wholeSequence(head: Expression, tail: Expression, make: Expressions): Expression {
  make.budget.spend();
  if (!head.looks) return make.follow(head, tail);
  if (head.kind === "ahead") return make.both([wholeText(head.rest, make), tail]);
  if (head.kind === "either") return make.either(head.parts.map((part) => wholeSequence(part, tail, make)));
  if (head.kind === "sequence") return wholeSequence(head.head, wholeSequence(head.tail, tail, make), make);
  return make.follow(head, tail);
}
