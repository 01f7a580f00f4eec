import type { GrammarWriter } from "../gbnf/grammar-writer.ts";

/** What a number must be, as the keywords of JSON Schema say it. */
export interface NumberBounds {
  readonly minimum?: number;
  readonly maximum?: number;
  readonly exclusiveMinimum?: number;
  readonly exclusiveMaximum?: number;
  readonly multipleOf?: readonly number[];
  readonly isInteger: boolean;
}

/**
 * Writes the JSON numbers within bounds.
 * @returns the name of the rule; undefined when the grammar cannot express it, and the answer must be checked
 */
export function writeNumber(writer: GrammarWriter, bounds: NumberBounds): string | undefined {
  const { isInteger, ...others } = bounds;
  if (Object.values(others).some((value) => value !== undefined)) return undefined;
  const integer = '"-"? ("0" | [1-9] [0-9]{0,15})';
  return isInteger ? writer.rule("integer", integer) : writer.rule("number", `${integer} ("." [0-9]{1,16})?`);
}
