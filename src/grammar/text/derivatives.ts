import { hasCodePoint } from "./code-points.ts";
import { type Expression, type Expressions, matchesEmpty } from "./expressions.ts";

/** Value of each lookbehind at the current position. */
type LookbehindTruths = ReadonlyMap<Expression, boolean>;

const NO_TRUTHS: LookbehindTruths = new Map();

/** Position in a text: the expression of the rest, and the progress of each lookbehind. */
export interface Position {
  readonly rest: Expression;
  /** Expressions that must match the next text for each of the root's `behinds` to be true. */
  readonly trackers: readonly Expression[];
}

/**
 * Matches texts by Brzozowski's derivatives: the derivative of an expression by a code point matches the rest of the
 * texts that begin with it. An expression has finitely many derivatives, which are the states of an automaton.
 */
export class Derivatives {
  readonly #make: Expressions;
  readonly #root: Expression;
  readonly #known = new Map<Expression, Map<number, Expression>>();

  constructor(make: Expressions, root: Expression) {
    this.#make = make;
    this.#root = root;
  }

  get start(): Position {
    const trackers = this.#root.behinds.map((behind) =>
      behind.kind === "behind" ? behind.before : this.#make.nothing,
    );
    return { rest: this.#root, trackers };
  }

  /** True if the text may end at a position. */
  mayEnd(position: Position): boolean {
    if (position.rest.matchesEmpty !== undefined) return position.rest.matchesEmpty;
    const truths = this.#truthsAt(position);
    return matchesEmpty(position.rest, (behind) => truths.get(behind)) === true;
  }

  /** Returns the position after one more code point. */
  after(position: Position, point: number): Position {
    const { rest, trackers } = position;
    if (rest.behinds.length === 0) return { rest: this.#derive(rest, point, NO_TRUTHS), trackers: [] };
    const truths = this.#truthsAt(position);
    const next = this.#derive(rest, point, truths);
    if (next.behinds.length === 0) return { rest: next, trackers: [] };
    return { rest: next, trackers: trackers.map((tracker) => this.#derive(tracker, point, truths)) };
  }

  #truthsAt({ trackers }: Position): LookbehindTruths {
    const truths = new Map<Expression, boolean>();
    for (const [at, behind] of this.#root.behinds.entries()) {
      const tracker = trackers[at] ?? this.#make.nothing;
      const isTrue = matchesEmpty(tracker, (inner) => truths.get(inner)) === true;
      truths.set(behind, isTrue !== (behind.kind === "behind" && behind.isNegated));
    }
    return truths;
  }

  #derive(of: Expression, point: number, truths: LookbehindTruths): Expression {
    const isConstant = of.behinds.length === 0;
    const known = isConstant ? this.#known.get(of)?.get(point) : undefined;
    if (known) return known;
    this.#make.budget.spend();
    const result = this.#deriveAnew(of, point, truths);
    if (isConstant) {
      const ofPoints = this.#known.get(of);
      if (ofPoints) ofPoints.set(point, result);
      else this.#known.set(of, new Map([[point, result]]));
    }
    return result;
  }

  #deriveAnew(of: Expression, point: number, truths: LookbehindTruths): Expression {
    const make = this.#make;
    switch (of.kind) {
      case "sequence":
        return this.#consume(of, point, make.empty, truths, true);
      case "either":
        return make.either(of.parts.map((part) => this.#derive(part, point, truths)));
      case "both": {
        const parts: Expression[] = [];
        for (const part of of.parts) {
          const next = this.#derive(part, point, truths);
          if (next.kind === "nothing") return next;
          parts.push(next);
        }
        return make.both(parts);
      }
      case "not":
        return make.not(this.#derive(of.body, point, truths));
      default:
        return this.#consume(of, point, make.empty, truths, false);
    }
  }

  /**
   * Returns the derivative of an expression that is followed by a tail.
   * @param isWhole true if the last part of a sequence is the rest of the text, which may be of any kind
   */
  #consume(
    of: Expression,
    point: number,
    tail: Expression,
    truths: LookbehindTruths,
    isWhole: boolean,
  ): Expression {
    const make = this.#make;
    make.budget.spend();
    switch (of.kind) {
      case "set":
        return hasCodePoint(of.set, point) ? tail : make.nothing;
      case "either":
        return make.either(of.parts.map((part) => this.#consume(part, point, tail, truths, false)));
      case "repeat":
        return this.#consumeRepeat(of, point, tail, truths);
      case "sequence":
        return this.#consumeSequence(of, point, tail, truths, isWhole);
      case "both":
      case "not":
        throw new Error("An intersection or complement is the last of its sequence");
      default:
        return make.nothing;
    }
  }

  #consumeRepeat(
    of: Expression & { kind: "repeat" },
    point: number,
    tail: Expression,
    truths: LookbehindTruths,
  ): Expression {
    const make = this.#make;
    const { body, max } = of;
    let { min } = of;
    const condition = this.#emptyWhen(body, truths);
    if (condition === make.anything) min = 0;
    else if (condition.kind !== "nothing" && min > 0) {
      const rest = make.follow(make.repeat(body, min - 1, max - 1), tail);
      const first = this.#consume(body, point, rest, truths, false);
      const later = this.#consume(make.repeat(body, min - 1, max - 1), point, tail, truths, false);
      return make.either([first, make.both([this.#derive(condition, point, truths), later])]);
    }
    const rest = make.follow(make.repeat(body, Math.max(0, min - 1), max - 1), tail);
    return this.#consume(body, point, rest, truths, false);
  }

  #consumeSequence(
    of: Expression,
    point: number,
    tail: Expression,
    truths: LookbehindTruths,
    isWhole: boolean,
  ): Expression {
    const make = this.#make;
    const results: Expression[] = [];
    const conditions: Expression[] = [];
    let at = of;
    for (; at.kind === "sequence"; at = at.tail) {
      const rest = isWhole ? at.tail : make.follow(at.tail, tail);
      const taken = this.#consume(at.head, point, rest, truths, false);
      results.push(make.both([...conditions, taken]));
      const condition = this.#emptyWhen(at.head, truths);
      if (condition !== make.anything) conditions.push(this.#derive(condition, point, truths));
      if (conditions.some(({ kind }) => kind === "nothing")) return make.either(results);
    }
    const last = isWhole ? this.#derive(at, point, truths) : this.#consume(at, point, tail, truths, false);
    return make.either([...results, make.both([...conditions, last])]);
  }

  /** Returns the expression that the rest of the text must match for `of` to match the empty text here. */
  #emptyWhen(of: Expression, truths: LookbehindTruths): Expression {
    const make = this.#make;
    if (!of.looks) return of.matchesEmpty ? make.anything : make.nothing;
    switch (of.kind) {
      case "ahead":
        return of.rest;
      case "behind":
        return truths.get(of) ? make.anything : make.nothing;
      case "repeat":
        return of.min === 0 ? make.anything : this.#emptyWhen(of.body, truths);
      case "either":
        return make.either(of.parts.map((part) => this.#emptyWhen(part, truths)));
      case "sequence": {
        const conditions: Expression[] = [];
        let at: Expression = of;
        for (; at.kind === "sequence"; at = at.tail) conditions.push(this.#emptyWhen(at.head, truths));
        return make.both([...conditions, this.#emptyWhen(at, truths)]);
      }
      default:
        throw new Error("An intersection or complement is the last of its sequence");
    }
  }
}
