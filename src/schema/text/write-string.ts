import type { GrammarWriter } from "../gbnf/grammar-writer.ts";
import type { TextSet } from "./text-set.ts";
import { writeAutomaton } from "./write-automaton.ts";
import { writeExpression } from "./write-expression.ts";

interface TextForm {
  /** "json" writes a JSON string literal with its quotes, "raw" the text itself. */
  readonly form?: "json" | "raw";
  /** What the text is, for readable names of rules. */
  readonly hint?: string;
}

/**
 * Writes the texts of a set. A set without texts has no grammar: check {@link TextSet.isEmpty} first.
 * @returns the name of the rule
 * @throws SchemaTooComplexError
 */
export function writeString(writer: GrammarWriter, set: TextSet, options: TextForm = {}): string {
  const { form = "json", hint = "string" } = options;
  const plain = writeExpression(writer, set.expression, form);
  if (plain === undefined) return writeAutomaton(writer, set.automaton(), form, hint);
  return writer.rule(hint, form === "json" ? String.raw`"\"" ${plain} "\""` : plain);
}
