import type { GrammarWriter } from "../gbnf/grammar-writer.ts";
import type { Automaton } from "./automaton.ts";
import { writeCharacter } from "./write-character.ts";

/** Writes an automaton as rules of which each is a state: one character, and then the next state. */
export function writeAutomaton(
  writer: GrammarWriter,
  states: Automaton,
  form: "json" | "raw",
  hint: string,
): string {
  const names = states.map(() => writer.reserve(hint));
  for (const [at, { mayEnd, edges }] of states.entries()) {
    const choices = edges.map(({ set, to }) => `${writeCharacter(writer, set, form)} ${names[to]}`);
    if (mayEnd) choices.push(form === "json" ? String.raw`"\""` : '""');
    writer.define(names[at] ?? "", choices.join(" | "));
  }
  return form === "json" ? writer.rule(hint, String.raw`"\"" ${names[0]}`) : (names[0] ?? "");
}
