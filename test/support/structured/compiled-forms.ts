import { numberSatisfies } from "./number-satisfies.ts";
import { GrammarWriter } from "../../../src/grammar/gbnf/grammar-writer.ts";
import type { NumberBounds } from "../../../src/grammar/numbers/number-bounds.ts";
import { writeNumber } from "../../../src/grammar/numbers/write-number.ts";
import { TextSet } from "../../../src/grammar/text/text-set.ts";
import { writeString } from "../../../src/grammar/text/write-text.ts";
import { WorkBudget } from "../../../src/grammar/schema-errors.ts";

/** Patterns that need each way of writing a grammar: by expression, by automaton, with escapes and long repetitions. */
const PATTERNS = [
  String.raw`^(?=.*[A-Z])(?=.*\d).{3,6}$`,
  "^(?!a)[a-c]{2}$",
  String.raw`^[^a-y]{1,3}$`,
  String.raw`^["\\\n]{2}$`,
  String.raw`^.{2,4100}$`,
  String.raw`^\p{Lu}\bx?$`,
  "^(?:[ぁ-ん]|😀){1,3}$",
];

const NUMBERS: readonly NumberBounds[] = [
  { isInteger: true, minimum: -17, maximum: 12_345 },
  { isInteger: false, exclusiveMinimum: 0.1, maximum: 2.5 },
  { isInteger: true, multipleOf: [7], minimum: 50, maximum: 9_999 },
  { isInteger: false, multipleOf: [0.25], minimum: 0, maximum: 500 },
];

interface CompiledForm {
  readonly name: string;
  readonly grammar: string;
  readonly isRight: (text: string) => boolean;
}

/** Grammars that our compiler writes, for llama.cpp to follow. */
export function compiledForms(): CompiledForm[] {
  const texts = PATTERNS.map((source) => {
    const writer = new GrammarWriter();
    const name = writeString(writer, TextSet.pattern(source, new WorkBudget()));
    const expression = new RegExp(source, "u");
    const isRight = (text: string): boolean => expression.test(String(JSON.parse(text)));
    return { name: `compiled ${source}`, grammar: writer.toString(name), isRight };
  });
  const numbers = NUMBERS.map((bounds) => {
    const writer = new GrammarWriter();
    const grammar = writer.toString(writeNumber(writer, bounds) ?? "");
    const isRight = (text: string): boolean => numberSatisfies(Number(text), bounds);
    return { name: `compiled ${JSON.stringify(bounds)}`, grammar, isRight };
  });
  return [...texts, ...numbers];
}
