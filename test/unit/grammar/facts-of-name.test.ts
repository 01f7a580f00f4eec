import { expect, test } from "vitest";
import { factsOfName } from "../../../src/grammar/terms/expand.ts";
import { hasKey, keysOf, restOf } from "../../../src/grammar/terms/term.ts";
import { TextSet } from "../../../src/grammar/text/text-set.ts";
import { WorkBudget } from "../../../src/grammar/schema-errors.ts";

test("the facts about a property are those with its name, in order", () => {
  const atom = { id: "x", set: TextSet.pattern("^a", new WorkBudget()) };
  const keys = [
    keysOf(["b", "a"]),
    restOf(["a"]),
    keysOf(["a"]),
    keysOf(["c"], [atom]),
    restOf(["c"], [atom]),
    keysOf(["a", "c"]),
  ];
  const facts = keys.map((each) => ({ keys: each, terms: [] }));
  for (const name of ["a", "b", "c", "d", "ab", "__proto__"])
    expect(factsOfName(facts, name)).toEqual(facts.filter((fact) => hasKey(fact.keys, name)));
});
