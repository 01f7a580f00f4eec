import { continueGrammar } from "../../src/grammar/gbnf/continue-grammar.ts";
import { type GrammarChoices, type GrammarPart, parseGbnf } from "../../src/grammar/gbnf/parse-gbnf.ts";

/** True if a grammar matches a complete text: if nothing more has to follow. */
export function grammarAccepts(source: string, text: string): boolean {
  const rest = continueGrammar(source, text);
  if (rest === undefined) return false;
  const { rules } = parseGbnf(rest);
  const visited = new Set<string>();
  const isEmpty = (choices: GrammarChoices): boolean =>
    choices.some((parts) => parts.every((part) => mayBeEmpty(part)));
  const mayBeEmpty = (part: GrammarPart): boolean => {
    if (part.kind === "repeat") return part.min === 0 || mayBeEmpty(part.part);
    if (part.kind === "group") return isEmpty(part.choices);
    if (part.kind === "set" || visited.has(part.name)) return false;
    visited.add(part.name);
    const isEmptyRule = isEmpty(rules.get(part.name) ?? []);
    visited.delete(part.name);
    return isEmptyRule;
  };
  return isEmpty(rules.get("root") ?? []);
}
