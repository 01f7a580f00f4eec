import { gbnfClass } from "./gbnf-text.ts";
import { WorkBudget } from "../work-budget.ts";
import type { Grammar, GrammarChoices, GrammarPart } from "./grammar.ts";
import { GrammarStacks, type Stack } from "./grammar-stacks.ts";
import { parseGbnf } from "./parse-gbnf.ts";

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
