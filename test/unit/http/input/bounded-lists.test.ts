import { describe, expect, test } from "vitest";
import { z } from "zod";
import { dictionary, list, MAX_LIST_LENGTH, tokenList } from "../../../../src/http/input/bounded-lists.ts";
import { parseInput } from "../../../../src/http/input/common-fields.ts";

describe("list", () => {
  test("returns the parsed elements", () => {
    const schema = z.object({ a: list(z.object({ b: z.string().trim() }), { min: 1, max: 2 }) });
    expect(parseInput(schema, { a: [{ b: " x " }, { b: "y", c: 1 }] })).toEqual({
      a: [{ b: "x" }, { b: "y" }],
    });
  });

  test.each([
    [[], "a: must not be empty"],
    [["x", "y", "z"], "a: must have at most 2 items"],
    [["x", 7, {}], "a.1: must be a string, got 7"],
    ["x", 'a: must be an array, got "x"'],
  ])("refuses %j: %s", (a, message) => {
    const elements = a.length > 2 && typeof a[1] === "number" ? 3 : 2;
    expect(() => parseInput(z.object({ a: list(z.string(), { min: 1, max: elements }) }), { a })).toThrow(
      message,
    );
  });

  test("stops at the first invalid element, and checks none of a too long list", () => {
    let looked = 0;
    const element = z.unknown().refine(() => {
      looked += 1;
      return false;
    }, "is wrong");
    const wrong = Array.from({ length: 10_000 }, () => ({}));
    expect(() => parseInput(list(element), wrong)).toThrow("0: is wrong");
    expect(looked).toBe(1);
    expect(() => parseInput(list(element, { max: 9999 }), wrong)).toThrow("at most 9999 items");
    expect(looked).toBe(1);
  });

  test("tokenList accepts integers only", () => {
    expect(parseInput(tokenList(), [1, 2])).toEqual([1, 2]);
    expect(() => parseInput(tokenList(), [1, 2.5])).toThrow("1: must be a whole number, got 2.5");
  });

  test("has the JSON schema of an array", () => {
    expect(z.toJSONSchema(list(z.string(), { min: 1, max: 5 }))).toMatchObject({
      type: "array",
      items: { type: "string" },
      minItems: 1,
      maxItems: 5,
    });
  });
});

describe("dictionary", () => {
  test("returns all fields but __proto__", () => {
    const value = parseInput(dictionary(z.number()), JSON.parse('{"a":1,"__proto__":2,"constructor":3}'));
    expect(Object.entries(value)).toEqual([
      ["a", 1],
      ["constructor", 3],
    ]);
  });

  test.each([
    [{ a: 1, b: "x", c: "y" }, 'b: must be a number, got "x"'],
    [[1], "must be an object, got an array"],
    [
      Object.fromEntries(Array.from({ length: MAX_LIST_LENGTH + 1 }, (_, at) => [at, at])),
      "at most 16384 entries",
    ],
  ])("refuses the first invalid field: %#", (value, message) => {
    expect(() => parseInput(dictionary(z.number()), value)).toThrow(message);
  });
});
