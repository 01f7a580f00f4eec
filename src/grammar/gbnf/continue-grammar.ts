import { WorkBudget } from "../schema-errors.ts";
import { hasCodePoint } from "../text/code-points.ts";
import { gbnfClass } from "./grammar-writer.ts";
import { type Grammar, type GrammarChoices, type GrammarPart, parseGbnf } from "./parse-gbnf.ts";

/**
 * The grammar of what may follow after a beginning that was already written.
 * @returns undefined when no text of the grammar begins so
 * @throws GrammarSyntaxError, SchemaTooComplexError
 */
export function continueGrammar(
  grammar: string,
  beginning: string,
  budget: WorkBudget = new WorkBudget(),
): string | undefined {
  if (beginning === "") return grammar;
  const parsed = parseGbnf(grammar);
  const stacks = stacksAfter(new GrammarStacks(parsed, budget), beginning);
  if (stacks.size === 0) return undefined;
  // A rule that refers to the root means the old one.
  let oldRoot = "whole";
  while (parsed.rules.has(oldRoot)) oldRoot += "-root";
  const nameOf = (name: string): string => (name === "root" ? oldRoot : name);
  const choices = [...stacks].map(partsOf);
  const rules = [...parsed.rules].filter(reachedFrom(choices, parsed));
  const lines = rules.map(([name, body]) => `${nameOf(name)} ::= ${writeChoices(body, nameOf)}\n`);
  return `root ::= ${writeChoices(choices, nameOf)}\n${lines.join("")}`;
}

/**
 * True when a text is a whole one of the grammar.
 * @throws GrammarSyntaxError, SchemaTooComplexError
 */
export function grammarAccepts(
  grammar: string,
  text: string,
  budget: WorkBudget = new WorkBudget(),
): boolean {
  const stacks = new GrammarStacks(parseGbnf(grammar), budget);
  return stacks.mayEnd(stacksAfter(stacks, text));
}

function stacksAfter(stacks: GrammarStacks, text: string): ReadonlySet<Stack> {
  let all = stacks.start;
  for (const character of text) {
    all = stacks.after(all, character.codePointAt(0) ?? 0);
    if (all.size === 0) break;
  }
  return all;
}

function partsOf(stack: Stack): GrammarPart[] {
  const parts: GrammarPart[] = [];
  for (let at = stack; at; at = at.below) parts.push(at.part);
  return parts;
}

/** Whether rules are still needed. */
function reachedFrom(
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
      return `${writePart(part.part, nameOf)}${repetition(part.min, part.max)}`;
  }
}

function repetition(min: number, max: number): string {
  if (max === Infinity) return min === 0 ? "*" : min === 1 ? "+" : `{${min},}`;
  if (min === 0 && max === 1) return "?";
  return min === max ? `{${min}}` : `{${min},${max}}`;
}

/** What must still follow, its first part on top. Equal stacks are the same object; null is the end. */
type Stack = { readonly id: number; readonly part: GrammarPart; readonly below: Stack } | null;

/** Follows texts through a grammar, all ways at once, as llama.cpp does. */
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
