import { describe, expect, test } from "vitest";
import { compileGrammar, compileIfQuick, type GrammarWork } from "../../../src/grammar/grammar-work.ts";
import { toLlamaSchema } from "../../../src/grammar/to-llama-schema.ts";

const ANY = { description: "" };

function dropped(schema: Record<string, unknown>): string[] {
  return toLlamaSchema(schema).dropped.map(({ path, keyword }) => `${path}: ${keyword}`);
}

describe("a schema for llama.cpp's converter", () => {
  test.each([
    ["true", { properties: { a: true } }, { a: ANY }],
    ["an empty schema", { properties: { a: {} } }, { a: ANY }],
    ["no properties", { properties: null }, undefined],
    [
      "an unknown type",
      { properties: { a: { type: "any", description: "A." } } },
      { a: { description: "A." } },
    ],
    ["a type in capitals", { properties: { a: { type: "STRING" } } }, { a: { type: "string" } }],
    ["an empty enum", { properties: { a: { enum: [] } } }, { a: ANY }],
    [
      "an enum with null",
      { properties: { a: { enum: ["x", null] } } },
      { a: { anyOf: [{ type: "string", enum: ["x"] }, { type: "null" }] } },
    ],
    [
      "an enum of numbers and booleans",
      { properties: { a: { enum: [1, true] } } },
      { a: { anyOf: [{ const: 1 }, { const: true }] } },
    ],
    ["a long text", { properties: { a: { type: "string", minLength: 5000 } } }, { a: { type: "string" } }],
    [
      "limits with a fraction",
      { properties: { a: { type: "integer", minimum: 0.5, exclusiveMaximum: 9.5 } } },
      { a: { type: "integer", minimum: 1, maximum: 9 } },
    ],
    [
      "a pattern that no grammar holds",
      { properties: { a: { pattern: "(a)\\1" } } },
      { a: { type: "string" } },
    ],
    ["a property named like a reference", { properties: { $ref: { type: "string" } } }, undefined],
    [
      "two types",
      { properties: { a: { type: ["string", "null"] } } },
      { a: { anyOf: [{ type: "string" }, { type: "null" }] } },
    ],
  ])("has %s in a supported form", (_, schema, properties) => {
    const { schema: made } = toLlamaSchema({ type: "object", ...schema });
    expect(made["type"]).toBe("object");
    expect(made["properties"]).toEqual(properties);
  });

  test("keeps annotations", () => {
    const schema = {
      type: "object",
      description: "Where.",
      properties: { city: { type: "string", description: "A city.", examples: ["Rome"], default: "Rome" } },
      required: ["city"],
      additionalProperties: false,
    };
    expect(toLlamaSchema(schema)).toEqual({ schema, dropped: [], ignored: [] });
  });

  test('reads additionalProperties "false" as false', () => {
    const schema = { properties: { a: { type: "string" } }, additionalProperties: "false" };
    expect(toLlamaSchema(schema).schema["additionalProperties"]).toBe(false);
  });

  test("has its own definitions for references, including recursive and escaped ones", () => {
    const node = { type: "object", properties: { next: { $ref: "#" }, tag: { $ref: "#/$defs/a~1b%25" } } };
    const { schema } = toLlamaSchema({ ...node, $defs: { "a/b%": { type: "string" } } });
    expect(schema["properties"]).toEqual({ next: { $ref: "#/$defs/root" }, tag: { $ref: "#/$defs/a1b25" } });
    expect(schema["$defs"]).toMatchObject({
      root: { type: "object", properties: { next: { $ref: "#/$defs/root" } } },
      a1b25: { type: "string" },
    });
  });

  test("has no left recursion, which grammars do not support", () => {
    expect(toLlamaSchema({ $ref: "#" })).toEqual({ schema: ANY, dropped: [], ignored: [] });
    expect(toLlamaSchema({ anyOf: [{ $ref: "#" }, { type: "string" }] }).schema).toEqual({
      anyOf: [{ type: "string" }],
    });
    const a = { anyOf: [{ $ref: "#/$defs/b" }, { type: "null" }] };
    const { schema } = toLlamaSchema({
      properties: { a },
      $defs: { b: { anyOf: [{ $ref: "#/properties/a" }] } },
    });
    expect(schema["$defs"]).toEqual({ b: ANY });
  });

  test("reports exactly the keywords that it drops", () => {
    expect(
      dropped({
        type: "object",
        properties: {
          age: { type: "number", minimum: 0, description: "Years." },
          tags: { type: "array", items: { type: "string", format: "uri" }, uniqueItems: true, maxItems: 3 },
          id: { $ref: "other.json" },
        },
        required: ["age", "name"],
        not: { required: ["id"] },
      }),
    ).toEqual([
      "properties.age: minimum",
      "properties.tags.items: format",
      "properties.tags: uniqueItems",
      "properties.id: $ref",
      ": required",
      ": not",
    ]);
  });
});

test("long patterns are not converted inline, but on the thread of grammars", () => {
  const pattern = `^${"ab".repeat(5_000)}$`;
  const work: GrammarWork = { kind: "llama", schemas: [{ type: "string", pattern }] };
  expect(compileIfQuick(work)).toBeUndefined();
  expect(compileGrammar(work)).toMatchObject({ schemas: [{ schema: { pattern }, dropped: [] }] });
});

test("a tool's grammar that is too large for quick work is compiled in full, not refused", () => {
  const words = Array.from({ length: 200 }, (_, index) => `word${index * 7919}`);
  const work: GrammarWork = { kind: "pattern", language: "regex", source: words.join("|") };
  expect(compileIfQuick(work)).toBeUndefined();
  expect(compileGrammar(work)).toMatchObject({ kind: "pattern" });
});

test("Unicode properties, each of which takes long, are no quick work", () => {
  const schema = { type: "string", pattern: "^\\p{Lu}\\p{Ll}+$" };
  expect(compileIfQuick({ kind: "llama", schemas: [schema] })).toBeUndefined();
  expect(compileIfQuick({ kind: "schema", schema })).toBeUndefined();
});
