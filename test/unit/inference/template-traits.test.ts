import { expect, test } from "vitest";
import { traitsOf } from "../../../src/inference/template-traits.ts";

test("a family's templates have its texts in their order", () => {
  expect(traitsOf("a [TOOL_CALLS] b [CALL_ID] c [ARGS] d").calls).toBeDefined();
  expect(traitsOf("a [ARGS] b [TOOL_CALLS] c [CALL_ID] d")).toEqual({});
  expect(traitsOf("{{ messages }}")).toEqual({});
  expect(traitsOf(undefined)).toEqual({});
});

test("a long template that nearly is one of a family is looked through once", () => {
  expect(traitsOf("[TOOL_CALLS]".repeat(10_000) + "[CALL_ID]".repeat(10_000))).toEqual({});
});
