import type { WorkBudget } from "../work-budget.ts";
import type { Automaton, State } from "./automaton.ts";
import { type CodePoints, unionOf } from "./code-points.ts";

/**
 * Joins the states after which the same texts may follow. Repeats two steps until nothing changes: what is alike to the
 * last detail is one state; then states are told apart by Moore's rounds, which the budget ends where they are many.
 */
export function mergeStates(states: Automaton, budget: WorkBudget): Automaton {
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
    if (numbers.size === count) return joined(states, classes, count);
    count = numbers.size;
  }
}

function signature({ edges }: State, classes: readonly number[]): string {
  return targetsOf(edges, classes)
    .map(([to, set]) => `${to}:${set.join()}`)
    .join(";");
}

/** The edges by class of their target. */
function targetsOf(edges: State["edges"], classes: readonly number[]): [to: number, set: CodePoints][] {
  const targets = new Map<number, CodePoints>();
  for (const { set, to } of edges) {
    const target = classes[to] ?? 0;
    const known = targets.get(target);
    targets.set(target, known ? unionOf(known, set) : set);
  }
  return [...targets].toSorted(([a], [b]) => a - b);
}

/** One state per class; the first of each is its model, so that the start stays the first. */
function joined(states: Automaton, classes: readonly number[], count: number): Automaton {
  const models: State[] = [];
  for (let number = 0; number < count; number += 1) {
    const model = states[classes.indexOf(number)];
    if (!model) continue;
    const edges = targetsOf(model.edges, classes).map(([to, set]) => ({ set, to }));
    models.push({ mayEnd: model.mayEnd, edges });
  }
  return models;
}
