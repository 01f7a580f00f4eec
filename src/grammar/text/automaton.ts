import { SchemaTooComplexError, type WorkBudget } from "../schema-errors.ts";
import {
  ALL_BUT_SURROGATES,
  type CodePoints,
  codePoints,
  hasCodePoint,
  intersectionOf,
  LAST_CODE_POINT,
  rangesOf,
} from "./code-points.ts";
import { Derivatives, type Position } from "./derivatives.ts";
import type { Expression, Expressions } from "./expressions.ts";

interface State {
  /** True if the text may end here. */
  readonly mayEnd: boolean;
  readonly edges: readonly { readonly set: CodePoints; readonly to: number }[];
}

/**
 * Minimal deterministic automaton of an expression, for texts without lone surrogates. The first state is the start; an
 * end can be reached from every state. Without states, it accepts nothing.
 */
export type Automaton = readonly State[];

/** Most states before minimization: as many as the budget allows for automatons of average size. */
const MAX_STATES = 4_000;

/** Builds the automaton of an expression. @throws SchemaTooComplexError */
export function toAutomaton(make: Expressions, root: Expression): Automaton {
  const alphabet = new Alphabet(root, make.budget);
  const derivatives = new Derivatives(make, root);
  const positions: Position[] = [derivatives.start];
  const numbers = new Map([[keyOf(derivatives.start), 0]]);
  const states: GroupedState[] = [];
  for (const position of positions) {
    make.budget.spend(4);
    const targets = new Map<number, number[]>();
    for (const groups of alphabet.groupsFor([position.rest, ...position.trackers])) {
      const next = derivatives.after(position, alphabet.samples[groups[0] ?? 0] ?? 0);
      if (next.rest.kind === "nothing") continue;
      const key = keyOf(next);
      let number = numbers.get(key);
      if (number === undefined) {
        number = positions.length;
        if (number >= MAX_STATES) throw new SchemaTooComplexError("a text has too many possible courses");
        numbers.set(key, number);
        positions.push(next);
      }
      const known = targets.get(number);
      if (known) known.push(...groups);
      else targets.set(number, groups);
    }
    const edges = [...targets].map(([to, groups]) => ({
      to,
      groups: groups.filter((group) => alphabet.isWritable(group)),
    }));
    const mayEnd = derivatives.mayEnd(position);
    states.push({ mayEnd, edges: edges.filter(({ groups }) => groups.length > 0) });
  }
  return mergeStates(withoutDeadEnds(states), make.budget).map(({ mayEnd, edges }) => ({
    mayEnd,
    edges: edges.map(({ groups, to }) => ({ set: alphabet.pointsOf(groups), to })),
  }));
}

function keyOf({ rest, trackers }: Position): string {
  return [rest, ...trackers].map(({ id }) => id).join();
}

/** Removes states from which no end can be reached. */
function withoutDeadEnds(states: readonly GroupedState[]): GroupedState[] {
  const sources = states.map((): number[] => []);
  for (const [from, { edges }] of states.entries()) for (const { to } of edges) sources[to]?.push(from);
  const live = new Set([...states.keys()].filter((at) => states[at]?.mayEnd));
  for (const at of live) for (const from of sources[at] ?? []) live.add(from);
  if (!live.has(0)) return [];
  const numbers = new Map([...states.keys()].filter((at) => live.has(at)).map((at, number) => [at, number]));
  return [...numbers.keys()].map((at) => ({
    mayEnd: states[at]?.mayEnd ?? false,
    edges: (states[at]?.edges ?? []).flatMap(({ groups, to }) => {
      const number = numbers.get(to);
      return number === undefined ? [] : [{ groups, to: number }];
    }),
  }));
}

/** Partition of the code points such that every set of an expression contains all or nothing of each group. */
class Alphabet {
  /** Code point of each group. */
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
    const ranges = segments.map((start, at): [number, number] => [
      start,
      (segments[at + 1] ?? LAST_CODE_POINT + 1) - 1,
    ]);
    this.#groups = [...Map.groupBy(ranges, (_, at) => groupOf[at]).values()].map(codePoints);
    this.samples = this.#groups.map((group) => group[0] ?? 0);
  }

  /** Returns the code points of groups, without surrogates. */
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

  /** False for a group of surrogates, which UTF-8 cannot encode. */
  isWritable(group: number): boolean {
    return (this.#groups[group] ?? []).some((point) => point < 0xd800 || point > 0xdfff);
  }

  /** Returns the groups, joined if none of the expressions distinguishes them by the next code point. */
  groupsFor(expressions: readonly Expression[]): number[][] {
    const sets = [...new Set(expressions.flatMap((expression) => [...this.#relevantTo(expression)]))];
    this.#budget.spend(1 + (sets.length * this.samples.length) / 16);
    const joined = Map.groupBy(this.samples.keys(), (group) => {
      const sample = this.samples[group] ?? 0;
      return sets.map((set) => (set.kind === "set" && hasCodePoint(set.set, sample) ? "1" : "0")).join("");
    });
    return [...joined.values()];
  }

  /** Returns the sets that the next code point is compared with. */
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

/** Returns the parts of an expression. */
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

/** State whose edges have groups of an alphabet. */
interface GroupedState {
  readonly mayEnd: boolean;
  readonly edges: readonly { readonly groups: readonly number[]; readonly to: number }[];
}

/** Joins equivalent states by Moore's algorithm. The first state stays the first. */
function mergeStates(states: readonly GroupedState[], budget: WorkBudget): GroupedState[] {
  let classes: number[] = states.map(({ mayEnd }) => (mayEnd ? 1 : 0));
  for (let count = 0; ;) {
    const numbers = new Map<string, number>();
    classes = states.map((state, at) => {
      budget.spend(1 + state.edges.length / 4);
      const key = `${classes[at]}|${signature(state, classes)}`;
      const number = numbers.get(key) ?? numbers.size;
      numbers.set(key, number);
      return number;
    });
    if (numbers.size === count) return mergeStatesJoined(states, classes, count);
    count = numbers.size;
  }
}

function signature(state: GroupedState, classes: readonly number[]): string {
  return edgesByClass(state, classes)
    .map(({ to, groups }) => `${to}:${groups.join()}`)
    .join(";");
}

function edgesByClass(
  { edges }: GroupedState,
  classes: readonly number[],
): { to: number; groups: number[] }[] {
  return [...Map.groupBy(edges, ({ to }) => classes[to] ?? 0)]
    .map(([to, all]) => ({ to, groups: all.flatMap(({ groups }) => groups).toSorted((a, b) => a - b) }))
    .toSorted((a, b) => a.to - b.to);
}

/** Builds one state per class, from its first member. */
function mergeStatesJoined(
  states: readonly GroupedState[],
  classes: readonly number[],
  count: number,
): GroupedState[] {
  const models: (GroupedState | undefined)[] = Array.from({ length: count }, () => undefined);
  for (const [at, state] of states.entries()) models[classes[at] ?? 0] ??= state;
  return models.map((model) => ({
    mayEnd: model?.mayEnd ?? false,
    edges: model ? edgesByClass(model, classes) : [],
  }));
}
