import { expect, it } from "vitest";
import { isRestricted } from "../../../src/engine/permission-model.ts";

it.each([
  ["holds back everything", [], true],
  ["lets files be read, all of them", ["fs.read"], false],
  ["lets files be written", ["fs.write"], false],
  ["lets processes be started", ["child"], false],
])("a permission model that %s fences an engine in: %#", (_, granted: string[], isFenced) => {
  expect(isRestricted({ has: (right) => granted.includes(right) })).toBe(isFenced);
});

it("without one an engine is not fenced in", () => {
  expect(process.permission).toBeUndefined();
  expect(isRestricted()).toBe(false);
});
