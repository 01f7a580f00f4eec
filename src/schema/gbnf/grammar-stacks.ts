import { hasCodePoint } from "../text/code-points.ts";
import type { WorkBudget } from "../work-budget.ts";
import type { Grammar, GrammarPart } from "./grammar.ts";

/** What must still follow, its first part on top. Equal stacks are the same object; null is the end. */
export type Stack = { readonly id: number; readonly part: GrammarPart; readonly below: Stack } | null;

/** Follows texts through a grammar, all ways at once, as llama.cpp does. */
export class GrammarStacks {
  readonly #grammar: Grammar;
  readonly #budget: WorkBudget;
  readonly #known = new Map<string, Stack>();

  constructor(grammar: Grammar, budget: WorkBudget) {
    this.#grammar = grammar;
    this.#budget = budget;
  }

  get start(): ReadonlySet<Stack> {
    return new Set((this.#grammar.rules.get("root") ?? []).map((parts) => this.#push(parts, null)));
  }

  /** The stacks after one more code point; none when it does not fit. */
  after(stacks: ReadonlySet<Stack>, point: number): ReadonlySet<Stack> {
    const next = new Set<Stack>();
    for (const stack of this.#opened(stacks)) {
      this.#budget.spend();
      if (stack?.part.kind === "set" && hasCodePoint(stack.part.set, point)) next.add(stack.below);
    }
    return next;
  }

  /** True when the text may end. */
  mayEnd(stacks: ReadonlySet<Stack>): boolean {
    return this.#opened(stacks).has(null);
  }

  /** Opens rules, groups and repetitions on top, until a character is on top of each stack. */
  #opened(stacks: ReadonlySet<Stack>): Set<Stack> {
    const reached = new Set(stacks);
    for (const stack of reached) {
      this.#budget.spend();
      if (stack === null || stack.part.kind === "set") continue;
      const { part, below } = stack;
      if (part.kind === "repeat") {
        if (part.min === 0) reached.add(below);
        if (part.max === 0) continue;
        const rest = this.#grammar.repeat(part.part, Math.max(0, part.min - 1), part.max - 1);
        reached.add(this.#push(part.max === 1 ? [part.part] : [part.part, rest], below));
        continue;
      }
      const choices = part.kind === "group" ? part.choices : (this.#grammar.rules.get(part.name) ?? []);
      for (const parts of choices) reached.add(this.#push(parts, below));
    }
    return reached;
  }

  #push(parts: readonly GrammarPart[], below: Stack): Stack {
    return parts.reduceRight<Stack>((under, part) => {
      this.#budget.spend();
      const key = `${part.id},${under?.id ?? -1}`;
      const known = this.#known.get(key);
      if (known) return known;
      const made = { id: this.#known.size, part, below: under };
      this.#known.set(key, made);
      return made;
    }, below);
  }
}
