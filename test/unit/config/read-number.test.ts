import { expect, test } from "vitest";
import { readNumber } from "../../../src/config/read-number.ts";

test.each([
  ["1", 1],
  ["-1.5", -1.5],
  ["+.5", 0.5],
  ["1.", 1],
  ["1e-3", 0.001],
  ["0x10", undefined],
  ["1.5.5", undefined],
  [".", undefined],
  ["", undefined],
])("%j is %s", (text, expected) => {
  expect(readNumber(text)).toBe(expected);
});

test("a million digits and something else are looked through once", () => {
  expect(readNumber(`${"1".repeat(1_000_000)}x`)).toBeUndefined();
});
