import { describe, expect, test } from "vitest";
import {
  checkAgainstCalls,
  checkAgainstSchema,
  compileCalls,
  compileSchema,
} from "../../../src/grammar/compile-grammar.ts";
import { grammarAccepts } from "../../support/grammar-accepts.ts";

/** Tells for each value if the grammar of a schema accepts it. */
function written(schema: unknown, values: readonly unknown[]): boolean[] {
  const { grammar } = compileSchema(schema);
  return values.map((value) => grammarAccepts(grammar, JSON.stringify(value)));
}

function gapsOf(schema: unknown): string[] {
  const { ignored, checked } = compileSchema(schema);
  return [...checked.map((keyword) => `${keyword} checked`), ...ignored.map(describeIgnored)];
}

function describeIgnored({ path, keyword }: { readonly path: string; readonly keyword: string }): string {
  return `${path} ${keyword} ignored`;
}

describe("the grammar of a schema", () => {
  test("has the declared properties in order, and optional ones may be left out", () => {
    const schema = {
      type: "object",
      properties: { a: { type: "integer" }, b: { enum: ["x", null] } },
      required: ["a"],
      additionalProperties: false,
    };
    expect(written(schema, [{ a: 1 }, { a: 1, b: null }, { b: "x" }, { a: 1, c: 2 }, { a: 1.5 }])).toEqual([
      true,
      true,
      false,
      false,
      false,
    ]);
    expect(gapsOf(schema)).toEqual([]);
  });

  test("distinguishes names that match a pattern from declared ones", () => {
    const schema = {
      type: "object",
      properties: { a1: { const: "x" } },
      patternProperties: { "^a": { type: ["string", "integer"] } },
      additionalProperties: false,
    };
    const { grammar } = compileSchema(schema);
    const accepts = (text: string): boolean => grammarAccepts(grammar, text);
    expect(['{"a2":5}', '{"a1":"x"}', '{"a1":"x","a2":5}'].map(accepts)).toEqual([true, true, true]);
    // Declared names have their own values, and occur once.
    expect(['{"a1":5}', '{"a1":"x","a1":5}', '{"b":5}'].map(accepts)).toEqual([false, false, false]);
    expect(gapsOf(schema)).toEqual([]);
  });

  test("allows compact and pretty-printed JSON, without trailing space", () => {
    const { grammar } = compileSchema({
      properties: { a: { type: "array", items: { type: "null" } } },
      type: "object",
    });
    const value = { a: [null, null] };
    expect(grammarAccepts(grammar, JSON.stringify(value))).toBe(true);
    expect(grammarAccepts(grammar, JSON.stringify(value, undefined, 2))).toBe(true);
    expect(grammarAccepts(grammar, '{"a": [null, null]}')).toBe(true);
    expect(grammarAccepts(grammar, `${JSON.stringify(value)} `)).toBe(false);
  });

  test("combines the constraints of allOf, anyOf and a reference", () => {
    const schema = {
      $defs: { named: { properties: { name: { type: "string", minLength: 1 } }, required: ["name"] } },
      type: "object",
      allOf: [{ $ref: "#/$defs/named" }, { properties: { name: { maxLength: 3 } } }],
      anyOf: [{ required: ["a"] }, { required: ["b"] }],
      properties: { a: { type: "null" }, b: { type: "null" } },
    };
    const values = [
      { a: null, name: "abc" },
      { b: null, name: "abc" },
      { name: "abc" },
      { a: null, name: "abcd" },
    ];
    expect(written(schema, values)).toEqual([true, true, false, false]);
  });

  test("excludes values of oneOf that two branches allow", () => {
    const schema = {
      oneOf: [
        { type: "integer", minimum: 0 },
        { type: "integer", maximum: 5 },
      ],
    };
    expect(written(schema, [-1, 0, 5, 6])).toEqual([true, false, false, true]);
  });

  test("counts properties, items, and items of contains", () => {
    const counted = {
      type: "object",
      additionalProperties: { type: "null" },
      maxProperties: 2,
      minProperties: 1,
    };
    expect(written(counted, [{}, { a: null }, { a: null, b: null, c: null }])).toEqual([false, true, false]);
    const contains = {
      type: "array",
      contains: { const: 1 },
      maxContains: 1,
      items: { type: "integer" },
      maxItems: 3,
    };
    expect(written(contains, [[], [2, 1], [1, 1], [2, 1, 2], [1, 2, 2, 2]])).toEqual([
      false,
      true,
      false,
      true,
      false,
    ]);
  });

  test("allows a recursive tree of any depth, but only complete ones", () => {
    const tree = {
      type: "object",
      properties: { children: { type: "array", items: { $ref: "#" } } },
      required: ["children"],
    };
    expect(written(tree, [{ children: [{ children: [] }] }, { children: [{}] }])).toEqual([true, false]);
  });

  test("has both branches of if, and forbids unevaluated properties", () => {
    const schema = {
      type: "object",
      if: { properties: { kind: { const: "card" } }, required: ["kind"] },
      // oxlint-disable-next-line unicorn/no-thenable -- the name of a keyword
      then: { properties: { number: { type: "string" } }, required: ["number"] },
      else: { properties: { kind: { type: "string" } } },
      unevaluatedProperties: false,
    };
    const values = [
      { kind: "card", number: "1" },
      { kind: "card" },
      { kind: "cash" },
      { kind: "cash", number: "1" },
    ];
    expect(written(schema, values)).toEqual([true, false, true, false]);
  });
});

describe("a keyword that a grammar cannot enforce", () => {
  test("is reported, and applied by the check of the answer", () => {
    const schema = { type: "array", items: { type: "string" }, uniqueItems: true };
    const check = (text: string) => checkAgainstSchema(schema, text);
    expect(gapsOf(schema)).toEqual(["uniqueItems checked"]);
    expect(check('["a","b"]')).toBeUndefined();
    expect(check('["a","a"]')).toMatchObject({ path: "", keyword: "uniqueItems" });
    expect(check('["a",')).toMatchObject({ keyword: "json" });
  });

  test("is reported as ignored if it cannot be checked", () => {
    const schema = {
      properties: { a: { pattern: "(.)\\1" }, b: { $ref: "https://example.com/other.json" } },
    };
    expect(gapsOf(schema)).toEqual(["properties.a pattern ignored", "properties.b $ref ignored"]);
  });

  test("is left to the check if it has too many alternatives", () => {
    const properties = Object.fromEntries(Array.from({ length: 12 }, (_, index) => [`p${index}`, {}]));
    const pairs = Array.from({ length: 12 }, (_, index) => ({
      anyOf: [{ required: [`p${index}`] }, { minProperties: index }],
    }));
    expect(gapsOf({ type: "object", properties, allOf: pairs }).length).toBeGreaterThan(0);
  });
});

describe("a schema that no value fits", () => {
  test.each([
    [
      "a contradiction",
      { type: "object", properties: { a: { type: "string", minLength: 3, maxLength: 2 } }, required: ["a"] },
      "properties.a",
    ],
    [
      "the negation of a keyword without effect",
      { type: "object", properties: { a: { type: "array", not: { maxContains: 1 } } }, required: ["a"] },
      "properties.a",
    ],
    [
      "a required property that is forbidden",
      { properties: { a: false }, required: ["a"], type: "object" },
      "",
    ],
    [
      "a reference to itself without end",
      { type: "object", properties: { a: { $ref: "#" } }, required: ["a"] },
      "",
    ],
  ])("is refused: %s", (_, schema, path) => {
    expect(() => compileSchema(schema)).toThrow(expect.objectContaining({ name: "SchemaError", path }));
  });
});

describe("the grammar of tool calls", () => {
  const tree = { type: "object", properties: { next: { $ref: "#" } }, additionalProperties: false };
  const tools = [{ name: "tree", parameters: tree }, { name: "free" }];
  const answer = { type: "boolean" };
  const { grammar } = compileCalls(tools, answer);
  const check = (text: string) => checkAgainstCalls({ tools, answer }, text);

  function accepts(value: unknown): boolean {
    return grammarAccepts(grammar, JSON.stringify(value));
  }

  test("has a call of each tool, with references resolved in its parameters, or an answer", () => {
    expect(accepts({ name: "tree", arguments: { next: { next: {} } } })).toBe(true);
    expect(accepts({ name: "tree", arguments: { next: { name: "tree" } } })).toBe(false);
    expect(accepts({ name: "free", arguments: { any: [1] } })).toBe(true);
    expect(accepts({ name: "free", arguments: [] })).toBe(false);
    expect(accepts({ name: "other", arguments: {} })).toBe(false);
    expect(accepts(true)).toBe(true);
  });

  test("is checked by the parameters of the called tool", () => {
    expect(check('{"name":"tree","arguments":{"next":{}}}')).toBeUndefined();
    expect(check('{"name":"tree","arguments":{"next":1}}')).toBeDefined();
    expect(check('{"name":"tree","arguments":{"next":{"no":1}}}')).toMatchObject({ path: "next.no" });
  });
});

test("a pattern with an infinite repetition count is reported, and makes no invalid grammar", () => {
  for (const pattern of ["^a{99999999999999999}$", `^a{${"9".repeat(90)}}$`]) {
    const { grammar, ignored } = compileSchema({ type: "string", pattern });
    expect(ignored).toMatchObject([{ keyword: "pattern" }]);
    expect(grammarAccepts(grammar, '"a"')).toBe(true);
  }
});

test("keywords with invalid values are reported, of a tool and of an answer beside it", () => {
  const schema = { properties: { a: { type: "strin" }, b: { type: ["null", "strin"] } }, minProperties: "x" };
  expect(gapsOf(schema)).toEqual([
    "properties.a type ignored",
    "properties.b type ignored",
    " minProperties ignored",
  ]);
  expect(gapsOf("strin")).toEqual(["  ignored"]);
  const { ignored } = compileCalls([{ name: "f", parameters: schema }], { type: "strin" });
  expect(ignored.map(({ tool, path, keyword }) => [tool, path, keyword])).toEqual([
    ["f", "properties.a", "type"],
    ["f", "properties.b", "type"],
    ["f", "", "minProperties"],
    [undefined, "", "type"],
  ]);
});
