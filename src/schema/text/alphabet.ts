import type { WorkBudget } from "../work-budget.ts";
import {
  ALL_BUT_SURROGATES,
  type CodePoints,
  codePoints,
  hasCodePoint,
  intersectionOf,
  LAST_CODE_POINT,
  rangesOf,
} from "./code-points.ts";
import type { Expression } from "./expression.ts";

/** The code points in the fewest groups such that every set of an expression has all of a group or none of it. */
export class Alphabet {
  /** One code point of each group. */
  readonly samples: readonly number[];
  readonly #groups: readonly CodePoints[];
  readonly #budget: WorkBudget;
  readonly #joined = new Map<string, CodePoints>();
  readonly #relevant = new Map<Expression, readonly Expression[]>();

  constructor(root: Expression, budget: WorkBudget) {
    this.#budget = budget;
    const sets = setsOf(root, budget);
    const starts = [...new Set([0, ...sets.flatMap((set) => rangesOf(set).flatMap(([a, b]) => [a, b + 1]))])];
    const segments = starts.filter((start) => start <= LAST_CODE_POINT).toSorted((a, b) => a - b);
    const groupOf = segments.map(() => 0);
    let count = 1;
    for (const set of sets) {
      budget.spend(1 + segments.length / 8);
      const splits = new Map<number, number>();
      for (const [at, start] of segments.entries()) {
        if (!hasCodePoint(set, start)) continue;
        const group = groupOf[at] ?? 0;
        const split = splits.get(group) ?? count++;
        splits.set(group, split);
        groupOf[at] = split;
      }
    }
    const groups = new Map<number, [number, number][]>();
    for (const [at, start] of segments.entries()) {
      const group = groupOf[at] ?? 0;
      const range: [number, number] = [start, (segments[at + 1] ?? LAST_CODE_POINT + 1) - 1];
      const known = groups.get(group);
      if (known) known.push(range);
      else groups.set(group, [range]);
    }
    this.#groups = [...groups.values()].map(codePoints);
    this.samples = this.#groups.map((group) => group[0] ?? 0);
  }

  /** All code points of these groups that a text can have. */
  pointsOf(groups: readonly number[]): CodePoints {
    const key = groups.join();
    const known = this.#joined.get(key);
    if (known) return known;
    const ranges = groups.flatMap((group) => rangesOf(this.#groups[group] ?? []));
    this.#budget.spend(1 + ranges.length);
    const points = intersectionOf(codePoints(ranges), ALL_BUT_SURROGATES);
    this.#joined.set(key, points);
    return points;
  }

  /** False for half characters, which no text has. */
  isWritable(group: number): boolean {
    return (this.#groups[group] ?? []).some((point) => point < 0xd800 || point > 0xdfff);
  }

  /** The groups, joined where none of the expressions can tell them apart by the next code point. */
  groupsFor(expressions: readonly Expression[]): number[][] {
    const sets = [...new Set(expressions.flatMap((expression) => [...this.#relevantTo(expression)]))];
    this.#budget.spend(1 + (sets.length * this.samples.length) / 16);
    const joined = new Map<string, number[]>();
    for (const [group, sample] of this.samples.entries()) {
      const key = sets
        .map((set) => (set.kind === "set" && hasCodePoint(set.set, sample) ? "1" : "0"))
        .join("");
      const known = joined.get(key);
      if (known) known.push(group);
      else joined.set(key, [group]);
    }
    return [...joined.values()];
  }

  /** The sets that the next code point may be compared with. */
  #relevantTo(expression: Expression): readonly Expression[] {
    const known = this.#relevant.get(expression);
    if (known) return known;
    this.#budget.spend();
    const found = new Set<Expression>();
    const add = (part: Expression): void => {
      for (const set of this.#relevantTo(part)) found.add(set);
    };
    let at = expression;
    for (; at.kind === "sequence"; at = at.tail) {
      add(at.head);
      if (at.head.matchesEmpty === false) break;
    }
    if (at.kind === "set") found.add(at);
    else if (at.kind !== "sequence") for (const part of partsOf(at)) add(part);
    const result = [...found];
    this.#relevant.set(expression, result);
    return result;
  }
}

/** The parts of an expression. */
function partsOf(expression: Expression): readonly Expression[] {
  switch (expression.kind) {
    case "sequence":
      return [expression.head, expression.tail];
    case "either":
    case "both":
      return expression.parts;
    case "not":
    case "repeat":
      return [expression.body];
    case "ahead":
      return [expression.rest];
    case "behind":
      return [expression.before];
    default:
      return [];
  }
}

function setsOf(root: Expression, budget: WorkBudget): CodePoints[] {
  const reached = new Set([root]);
  const sets: CodePoints[] = [];
  for (const expression of reached) {
    budget.spend();
    if (expression.kind === "set") sets.push(expression.set);
    for (const part of partsOf(expression)) reached.add(part);
  }
  return sets;
}
