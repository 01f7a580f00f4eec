import type { WorkBudget } from "../work-budget.ts";
import { type Automaton, toAutomaton } from "./automaton.ts";
import { rangesOf } from "./code-points.ts";
import { Derivatives } from "./derivatives.ts";
import type { Expression } from "./expression.ts";
import { Expressions } from "./expressions.ts";
import { generatedFormat } from "./formats.ts";
import { parsePattern } from "./parse-pattern.ts";
import { textsWith } from "./whole-text.ts";

const expressionsOf = new WeakMap<WorkBudget, Expressions>();

/**
 * A set of texts that a finite automaton can tell apart. Sets of one compilation share its {@link WorkBudget}; all that
 * may take long throws SchemaTooComplexError when it is spent.
 */
export class TextSet {
  /** How the texts look. */
  readonly expression: Expression;
  readonly #make: Expressions;
  #automaton: Automaton | undefined;
  #derivatives: Derivatives | undefined;

  private constructor(make: Expressions, expression: Expression) {
    this.#make = make;
    this.expression = expression;
  }

  /** Every text. */
  static any(budget: WorkBudget): TextSet {
    const make = makerOf(budget);
    return new TextSet(make, make.anything);
  }

  static literal(text: string, budget: WorkBudget): TextSet {
    const make = makerOf(budget);
    return new TextSet(make, make.literal(text));
  }

  static oneOf(texts: readonly string[], budget: WorkBudget): TextSet {
    const make = makerOf(budget);
    return new TextSet(make, make.either(texts.map((text) => make.literal(text))));
  }

  /**
   * The texts in which a pattern of ECMA-262 is found.
   * @throws NotRegularError when no automaton can decide that
   */
  static pattern(source: string, budget: WorkBudget): TextSet {
    const make = makerOf(budget);
    return new TextSet(make, textsWith(parsePattern(source, make), make));
  }

  /** The texts of a number of code points. */
  static lengthBetween(min: number, max: number, budget: WorkBudget): TextSet {
    const make = makerOf(budget);
    return new TextSet(make, min > max ? make.nothing : make.repeat(make.anyPoint, min, max));
  }

  /**
   * Texts of a format of JSON Schema: all, or those that every validator accepts.
   * @returns undefined when the format is not known
   */
  static format(name: string, budget: WorkBudget): TextSet | undefined {
    const source = generatedFormat(name);
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

  /** True when it surely has every text; false when not, or when it cannot be seen at once. */
  get isAny(): boolean {
    return this.expression === this.#make.anything;
  }

  /** True when there is no such text, or only ones with half characters, which UTF-8 does not have. */
  isEmpty(): boolean {
    if (this.expression.kind === "nothing") return true;
    if (this.expression.isPlain) return false;
    return this.automaton().length === 0;
  }

  /**
   * All texts, in no order.
   * @returns undefined when there are more than the limit
   */
  texts(limit: number): string[] | undefined {
    const states = this.automaton();
    const found: string[] = [];
    const todo: { readonly at: number; readonly text: string; readonly path: readonly number[] }[] = [];
    if (states.length > 0) todo.push({ at: 0, text: "", path: [] });
    for (let next = todo.pop(); next; next = todo.pop()) {
      const { at, text, path } = next;
      this.#make.budget.spend(1 + path.length / 16);
      // Every state leads to an end, so a circle means endlessly many texts.
      if (path.includes(at)) return undefined;
      const state = states[at];
      if (state?.mayEnd) found.push(text);
      for (const { set, to } of state?.edges ?? []) {
        for (const [first, last] of rangesOf(set)) {
          if (last - first >= limit) return undefined;
          for (let point = first; point <= last; point += 1)
            todo.push({ at: to, text: text + String.fromCodePoint(point), path: [...path, at] });
        }
      }
      if (found.length + todo.length > limit) return undefined;
    }
    return found;
  }

  /** True when each text of this set is in the other. */
  isWithin(other: TextSet): boolean {
    return this.and(other.not()).isEmpty();
  }

  /** Takes time in proportion to the text's length. */
  has(text: string): boolean {
    this.#derivatives ??= new Derivatives(this.#make, this.expression);
    let position = this.#derivatives.start;
    for (const character of text) position = this.#derivatives.after(position, character.codePointAt(0) ?? 0);
    return this.#derivatives.mayEnd(position);
  }

  /**
   * The least automaton.
   * @throws SchemaTooComplexError
   */
  automaton(): Automaton {
    this.#automaton ??= toAutomaton(this.#make, this.expression);
    return this.#automaton;
  }
}

function makerOf(budget: WorkBudget): Expressions {
  const known = expressionsOf.get(budget);
  if (known) return known;
  const made = new Expressions(budget);
  expressionsOf.set(budget, made);
  return made;
}
