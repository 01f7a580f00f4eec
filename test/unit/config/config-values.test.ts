import { expect, test } from "vitest";
import { parseDuration, parseDecimal } from "../../../src/config/config-values.ts";

test.for<[string | number, number | undefined]>([
  ["5m", 300_000],
  ["5m0s", 300_000],
  ["1h30m", 5_400_000],
  ["1.5h", 5_400_000],
  ["300ms", 300],
  ["90", 90_000],
  [" 2s ", 2000],
  [60, 60_000],
  [0, 0],
  ["0", 0],
  ["0s", 0],
  [-1, Number.POSITIVE_INFINITY],
  ["-1", Number.POSITIVE_INFINITY],
  ["-1m", Number.POSITIVE_INFINITY],
  [1e15, Number.POSITIVE_INFINITY],
  ["9999999999h", Number.POSITIVE_INFINITY],
  ["", undefined],
  ["soon", undefined],
  ["5 m", undefined],
  ["m", undefined],
])("parseDuration(%j) is %s milliseconds", ([value, expected]) => {
  expect(parseDuration(value)).toBe(expected);
});

test("parseDuration takes linear time for a million digits without a unit", () => {
  expect(parseDuration(`${"1".repeat(1_000_000)}x`)).toBeUndefined();
});

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
])("parseDecimal(%j) is %s", (text, expected) => {
  expect(parseDecimal(text)).toBe(expected);
});

test("parseDecimal takes linear time for a million digits and a letter", () => {
  expect(parseDecimal(`${"1".repeat(1_000_000)}x`)).toBeUndefined();
});
