import { expect, test } from "vitest";
import { parseDuration } from "../../../src/config/duration.ts";

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
])("%j is %s milliseconds", ([value, expected]) => {
  expect(parseDuration(value)).toBe(expected);
});

test("a million digits and no unit are looked through once", () => {
  expect(parseDuration(`${"1".repeat(1_000_000)}x`)).toBeUndefined();
});
