import type { WorkBudget } from "../work-budget.ts";

/** A state of which the edges name groups of an alphabet. */
export interface GroupedState {
  readonly mayEnd: boolean;
  readonly edges: readonly { readonly groups: readonly number[]; readonly to: number }[];
}

/** Joins the states after which the same texts may follow, by Moore's rounds. The first state stays the first. */
export function mergeStates(states: readonly GroupedState[], budget: WorkBudget): GroupedState[] {
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

function signature(state: GroupedState, classes: readonly number[]): string {
  return edgesByClass(state, classes)
    .map(({ to, groups }) => `${to}:${groups.join()}`)
    .join(";");
}

function edgesByClass(
  { edges }: GroupedState,
  classes: readonly number[],
): { to: number; groups: number[] }[] {
  const targets = new Map<number, number[]>();
  for (const { groups, to } of edges) {
    const target = classes[to] ?? 0;
    const known = targets.get(target);
    if (known) known.push(...groups);
    else targets.set(target, [...groups]);
  }
  return [...targets]
    .map(([to, groups]) => ({ to, groups: groups.toSorted((a, b) => a - b) }))
    .toSorted((a, b) => a.to - b.to);
}

/** One state per class; the first of each is its model. */
function joined(states: readonly GroupedState[], classes: readonly number[], count: number): GroupedState[] {
  const models: (GroupedState | undefined)[] = Array.from({ length: count }, () => undefined);
  for (const [at, state] of states.entries()) models[classes[at] ?? 0] ??= state;
  return models.map((model) => ({
    mayEnd: model?.mayEnd ?? false,
    edges: model ? edgesByClass(model, classes) : [],
  }));
}
