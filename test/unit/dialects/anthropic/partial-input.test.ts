import { partialParse } from "@anthropic-ai/sdk/_vendor/partial-json-parser/parser.mjs";
import { expect, test } from "vitest";
import { parseInput } from "../../../../src/dialects/anthropic/partial-input.ts";

const WHOLE = JSON.stringify(
  {
    city: 'Kö\\ln "{[,',
    days: [1, -2.5e3, { deep: [[], [null, true]] }],
    said: 'so, "yes, no"',
    flags: { a: false, b: {}, c: "" },
    end: 12,
  },
  undefined,
  1,
);

test("arguments cut anywhere are what the API's own client makes of them", () => {
  for (let length = 1; length <= WHOLE.length; length += 1) {
    const text = WHOLE.slice(0, length);
    expect({ text, input: parseInput(text) }).toEqual({ text, input: partialParse(text) });
  }
});

test.each(["", "nothing", "[1]", "3", '{"a": }'])("%j is not an object", (text) => {
  expect(parseInput(text)).toEqual({});
});
