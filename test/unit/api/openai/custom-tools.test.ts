import { describe, expect, test } from "vitest";
import { encodeInput, InputDecoder } from "../../../../src/api/openai/custom-tools.ts";
import { randomPieces } from "../../inference/random-pieces.ts";
import { PATCH } from "../../../support/patch-grammar.ts";
import { randomNumbers } from "../../../support/random-numbers.ts";

function decode(parts: readonly string[]): string {
  const decoder = new InputDecoder();
  return parts.map((piece) => decoder.push(piece)).join("") + decoder.finish();
}

describe("the input of a custom tool", () => {
  test("is decoded from arguments split at any position", () => {
    const random = randomNumbers(7);
    const input = `${PATCH}\u0001\\u00e9 \\\\ "quoted" / {"input":"x"}`;
    const spaced = ` {\n"input" : ${JSON.stringify(input).replaceAll("🙂", "\\ud83d\\ude42")} }\n`;
    for (let round = 0; round < 200; round += 1) {
      expect(decode(randomPieces(encodeInput(input), random))).toBe(input);
      expect(decode(randomPieces(spaced, random))).toBe(input);
    }
  });

  test("is returned as soon as it can be decoded", () => {
    const decoder = new InputDecoder();
    const parts = ['{"inp', 'ut":"', "ab\\", "n\\ud8", "3d", "\\ude42c", '"', "}"];
    expect(parts.map((piece) => decoder.push(piece))).toEqual(["", "", "ab", "\n", "", "🙂c", "", ""]);
  });

  test.for<[string, string]>([
    ['{"input":"cut of', "cut of"],
    ['{"input":"cut\\u00', "cut"],
    ['{"input":"cut\\ud83d', "cut"],
    ['{"input":"two\nlines"}', "two\nlines"],
    ['{"input":"a \\u12 b"}', 'a \\u12 b"}'],
    ['{"patch":"other"}', "other"],
    ['"plain"', "plain"],
    ["no JSON", "no JSON"],
    ['{"a":"b","c":"d"}', '{"a":"b","c":"d"}'],
    ["", ""],
  ])("is found in arguments of an unexpected form: %s", ([text, input]) => {
    expect(decode([text])).toBe(input);
    expect(decode(Array.from(text))).toBe(input);
  });
});
