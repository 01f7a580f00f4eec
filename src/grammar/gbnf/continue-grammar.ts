import { WorkBudget } from "../schema-errors.ts";
import { hasCodePoint } from "../text/code-points.ts";
import { gbnfClass, gbnfRepetition } from "./grammar-writer.ts";
import { type Grammar, type GrammarChoices, type GrammarPart, parseGbnf } from "./parse-gbnf.ts";

/**
 * Returns the grammar of the text that may follow after a beginning.
 * @returns undefined if no text of the grammar has this beginning
 * @throws GrammarSyntaxError, SchemaTooComplexError
 */
export function continueGrammar(
  grammar: string,
  beginning: string,
  budget: WorkBudget = new WorkBudget(),
): string | undefined {
  if (beginning === "") return grammar;
  const parsed = parseGbnf(grammar);
  const matcher = new GrammarStacks(parsed, budget);
  let stacks = matcher.start;
  for (const character of beginning) stacks = matcher.after(stacks, character.codePointAt(0) ?? 0);
  if (stacks.size === 0) return undefined;
  // References to the root mean the original one.
  let oldRoot = "whole";
  while (parsed.rules.has(oldRoot)) oldRoot += "-root";
  const nameOf = (name: string): string => (name === "root" ? oldRoot : name);
  const choices = [...stacks].map(partsOf);
  const rules = [...parsed.rules].filter(isReachableFrom(choices, parsed));
  const lines = rules.map(([name, body]) => `${nameOf(name)} ::= ${writeChoices(body, nameOf)}\n`);
  return `root ::= ${writeChoices(choices, nameOf)}\n${lines.join("")}`;
}

function partsOf(stack: Stack): GrammarPart[] {
  const parts: GrammarPart[] = [];
  for (let at = stack; at; at = at.below) parts.push(at.part);
  return parts;
}

/** Creates a filter for rules that are reachable from some choices. */
function isReachableFrom(
  choices: GrammarChoices,
  { rules }: Grammar,
): (rule: readonly [string, GrammarChoices]) => boolean {
  const names = new Set<string>();
  const visit = (part: GrammarPart): void => {
    if (part.kind === "rule") names.add(part.name);
    else if (part.kind === "repeat") visit(part.part);
    else if (part.kind === "group") part.choices.flat().forEach(visit);
  };
  choices.flat().forEach(visit);
  for (const name of names) rules.get(name)?.flat().forEach(visit);
  return ([name]) => names.has(name);
}

function writeChoices(choices: GrammarChoices, nameOf: (name: string) => string): string {
  return choices
    .map((parts) => (parts.length === 0 ? '""' : parts.map((part) => writePart(part, nameOf)).join(" ")))
    .join(" | ");
}

function writePart(part: GrammarPart, nameOf: (name: string) => string): string {
  switch (part.kind) {
    case "set":
      return gbnfClass(part.set);
    case "rule":
      return nameOf(part.name);
    case "group":
      return `(${writeChoices(part.choices, nameOf)})`;
    default:
      return `${writePart(part.part, nameOf)}${gbnfRepetition(part.min, part.max)}`;
  }
}

/** Parts that must follow, the next one on top. Equal stacks are the same object; null is the end of the text. */
type Stack = { readonly id: number; readonly part: GrammarPart; readonly below: Stack } | null;

/** Matches texts with a grammar by all possible stacks in parallel, like llama.cpp. */
class GrammarStacks {
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

  /** Returns the stacks after one more code point; none if it does not match. */
  after(stacks: ReadonlySet<Stack>, point: number): ReadonlySet<Stack> {
    const next = new Set<Stack>();
    for (const stack of this.#expanded(stacks)) {
      this.#budget.spend();
      if (stack?.part.kind === "set" && hasCodePoint(stack.part.set, point)) next.add(stack.below);
    }
    return next;
  }

  /** Expands rules, groups and repetitions until each stack has a character on top. */
  #expanded(stacks: ReadonlySet<Stack>): Set<Stack> {
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
