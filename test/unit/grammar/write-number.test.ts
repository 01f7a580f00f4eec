import { describe, expect, test } from "vitest";
import { numberSatisfies } from "../../support/structured/number-satisfies.ts";
import { grammarAccepts } from "../../support/grammar-accepts.ts";
import { GrammarWriter } from "../../../src/grammar/gbnf/grammar-writer.ts";
import type { NumberBounds } from "../../../src/grammar/numbers/number-bounds.ts";
import { hasNoNumber, writeNumber } from "../../../src/grammar/numbers/write-number.ts";
import { sampleGrammar } from "../../support/sample-grammar.ts";

function grammarOf(bounds: NumberBounds): string {
  const writer = new GrammarWriter();
  const name = writeNumber(writer, bounds);
  if (name === undefined) throw new Error("The bounds cannot be written");
  return writer.toString(name);
}

const EXPRESSIBLE: NumberBounds[] = [
  { isInteger: true },
  { isInteger: false },
  { isInteger: true, minimum: 1, maximum: 1000 },
  { isInteger: true, minimum: -17, maximum: 123_456 },
  { isInteger: true, exclusiveMinimum: 9, exclusiveMaximum: 1_000_000 },
  { isInteger: true, minimum: 0.5, maximum: 300.5 },
  { isInteger: true, minimum: -(2 ** 63), maximum: 2 ** 63 },
  { isInteger: true, exclusiveMaximum: -250 },
  { isInteger: false, minimum: 0, maximum: 1 },
  { isInteger: false, minimum: 0.1, maximum: 2.5 },
  { isInteger: false, exclusiveMinimum: 0, exclusiveMaximum: 1 },
  { isInteger: false, exclusiveMinimum: 0.1, maximum: 0.15 },
  { isInteger: false, exclusiveMinimum: -1.25, exclusiveMaximum: -1.2 },
  { isInteger: false, minimum: -90, maximum: 90 },
  { isInteger: false, minimum: 1e-7, maximum: 1e-6 },
  { isInteger: false, minimum: 1e300 },
  { isInteger: false, exclusiveMaximum: 0 },
  { isInteger: false, minimum: -0, maximum: 5 },
  { isInteger: false, exclusiveMinimum: 2 ** 53 },
  { isInteger: false, minimum: 0.1 + 0.2, exclusiveMaximum: 0.300_000_000_000_002 },
  { isInteger: false, multipleOf: [0.01] },
  { isInteger: false, multipleOf: [0.25], minimum: 1 },
  { isInteger: false, multipleOf: [0.5], minimum: -3, maximum: 1000 },
  { isInteger: true, multipleOf: [7], minimum: -50, maximum: 100_000 },
  { isInteger: true, multipleOf: [60] },
  { isInteger: true, multipleOf: [4, 6], minimum: 5 },
  { isInteger: true, multipleOf: [97], minimum: 0, maximum: 1000 },
  { isInteger: true, multipleOf: [1000], exclusiveMinimum: 1000, exclusiveMaximum: 10_000_000 },
  { isInteger: true, multipleOf: [0.5, 3] },
];

test.each(EXPRESSIBLE)("every number of the grammar satisfies %j", (bounds) => {
  const texts = sampleGrammar(grammarOf(bounds), 300);
  expect(texts.filter((text) => !numberSatisfies(Number(text), bounds))).toEqual([]);
});

test.each(EXPRESSIBLE)(
  "every number with few digits that satisfies the bounds is in the grammar: %j",
  (bounds) => {
    const grammar = grammarOf(bounds);
    const {
      minimum = 0,
      exclusiveMinimum = minimum,
      maximum = exclusiveMinimum,
      exclusiveMaximum = maximum,
    } = bounds;
    const wrong: string[] = [];
    for (const middle of [0, exclusiveMinimum, exclusiveMaximum]) {
      for (const unit of [0.01, 0.25, 1, 3, 7]) {
        for (const steps of [-40, -12, -3, -2, -1, 0, 1, 2, 3, 12, 40]) {
          const value = Number((middle + steps * unit).toPrecision(12));
          const text = String(value);
          if (text.includes("e") || Object.is(value, -0)) continue;
          const twoPlaces = bounds.multipleOf?.includes(0.25) === true ? value.toFixed(2) : text;
          const written =
            bounds.multipleOf?.includes(0.5) === true ? [text, value.toFixed(1)] : [twoPlaces, text];
          const accepts = written.some((each) => Number(each) === value && grammarAccepts(grammar, each));
          if (numberSatisfies(value, bounds) !== accepts) wrong.push(text);
        }
      }
    }
    expect(wrong).toEqual([]);
  },
);

describe("bounds of a number", () => {
  test.each<NumberBounds>([
    { isInteger: true, minimum: 2, maximum: 1 },
    { isInteger: true, exclusiveMinimum: 1, exclusiveMaximum: 2 },
    { isInteger: false, exclusiveMinimum: 1, maximum: 1 },
    { isInteger: true, minimum: 1, maximum: 6, multipleOf: [7] },
  ])("that no number satisfies are detected: %j", (bounds) => {
    expect(hasNoNumber(bounds)).toBe(true);
    expect(writeNumber(new GrammarWriter(), bounds)).toBeUndefined();
  });

  test("that take too many rules are left to the check", () => {
    expect(writeNumber(new GrammarWriter(), { isInteger: true, multipleOf: [99_991] })).toBeUndefined();
  });

  test("count multiples of decimals exactly", () => {
    expect(numberSatisfies(4.02, { isInteger: false, multipleOf: [0.01] })).toBe(true);
    expect(numberSatisfies(0.0075, { isInteger: false, multipleOf: [0.0001] })).toBe(true);
    expect(numberSatisfies(0.00751, { isInteger: false, multipleOf: [0.0001] })).toBe(false);
    expect(numberSatisfies(1e308, { isInteger: true, multipleOf: [0.123456789] })).toBe(false);
  });
});
