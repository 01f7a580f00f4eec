import { SchemaTooComplexError } from "../schema-errors.ts";
import { Alphabet } from "./alphabet.ts";
import type { CodePoints } from "./code-points.ts";
import { Derivatives, type Position } from "./derivatives.ts";
import type { Expression } from "./expression.ts";
import type { Expressions } from "./expressions.ts";
import { type GroupedState, mergeStates } from "./merge-states.ts";

interface State {
  /** True when the text may end here. */
  readonly mayEnd: boolean;
  readonly edges: readonly { readonly set: CodePoints; readonly to: number }[];
}

/**
 * The least deterministic automaton of an expression, for texts without lone surrogates. The first state is the start;
 * from every other one an end can be reached. No states: there is no such text.
 */
export type Automaton = readonly State[];

/** Most states before equal ones are joined: as many as the budget allows for automatons of average width. */
const MAX_STATES = 4_000;

/** @throws SchemaTooComplexError */
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

/** Leaves out the states from which no end can be reached. */
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
