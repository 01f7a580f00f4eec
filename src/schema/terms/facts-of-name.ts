import type { KeyFact } from "./branch.ts";
import { hasKey } from "./keys.ts";

/** Where facts stand in their list. */
interface Index {
  /** Of those that are about a few names alone. */
  readonly byName: ReadonlyMap<string, readonly number[]>;
  readonly others: readonly number[];
}

/** A list is replaced when a fact is added to it. */
const indices = new WeakMap<readonly KeyFact[], Index>();

/** The facts about a property, in their order. Schemas may have thousands of properties with a fact each. */
export function factsOfName(facts: readonly KeyFact[], name: string): readonly KeyFact[] {
  let index = indices.get(facts);
  if (!index) indices.set(facts, (index = indexOf(facts)));
  const others = index.others.filter((at) => hasKey(facts[at]!.keys, name));
  const all = [...(index.byName.get(name) ?? []), ...others];
  return all.toSorted((a, b) => a - b).map((at) => facts[at]!);
}

function indexOf(facts: readonly KeyFact[]): Index {
  const byName = new Map<string, number[]>();
  const others: number[] = [];
  for (const [at, { keys }] of facts.entries()) {
    if (keys.isRest || keys.atoms.length > 0) others.push(at);
    else
      for (const name of keys.names) {
        const known = byName.get(name);
        if (known) known.push(at);
        else byName.set(name, [at]);
      }
  }
  return { byName, others };
}
