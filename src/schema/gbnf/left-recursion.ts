import type { Grammar, GrammarChoices } from "./grammar.ts";

/**
 * A rule that begins with itself, directly or through others, which llama.cpp refuses; undefined: none is found. What comes
 * after a part that may be empty is left to llama.cpp.
 */
export function leftRecursiveRule({ rules }: Grammar): string | undefined {
  const done = new Set<string>();
  const open = new Set<string>();
  // No recursion: a chain of rules may be longer than the stack allows.
  const ways: { readonly name: string; readonly left: Iterator<string> }[] = [];
  const enter = (name: string): void => {
    open.add(name);
    ways.push({ name, left: firstRules(rules.get(name) ?? []).values() });
  };
  for (const start of rules.keys()) {
    if (!done.has(start)) enter(start);
    for (let way = ways.at(-1); way; way = ways.at(-1)) {
      const next = way.left.next();
      if (next.done) {
        ways.pop();
        open.delete(way.name);
        done.add(way.name);
      } else if (open.has(next.value)) return next.value;
      else if (!done.has(next.value)) enter(next.value);
    }
  }
  return undefined;
}

/** The rules with which choices begin, added to others. */
function firstRules(choices: GrammarChoices, names = new Set<string>()): Set<string> {
  for (const [first] of choices) {
    let part = first;
    while (part?.kind === "repeat") part = part.max === 0 ? undefined : part.part;
    if (part?.kind === "rule") names.add(part.name);
    if (part?.kind === "group") firstRules(part.choices, names);
  }
  return names;
}
