import { expect, test } from "vitest";
import { isAtLeast } from "../../../src/fleet/jetstream/jetstream-errors.ts";

test.each([
  ["2.9.0", true],
  ["2.9.10", true],
  ["2.10.0-beta.1", true],
  ["3.0.0", true],
  ["2.8.4", false],
  ["1.20.1", false],
  ["", false],
])("version %s is 2.9.0 or newer: %s", (version, isNewer) => {
  expect(isAtLeast(version, [2, 9, 0])).toBe(isNewer);
});
