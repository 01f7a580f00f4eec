import { expect, test } from "vitest";
import { SchemaDocument } from "../../../src/grammar/schema-document.ts";

test.each<[what: string, schema: unknown, normalized: unknown]>([
  [
    "Gemini's types",
    { type: "OBJECT", properties: { a: { type: "STRING" } } },
    { type: ["object"], properties: { a: { type: ["string"] } } },
  ],
  ["any type", { type: "any" }, {}],
  ["no type", { type: null, description: null, format: null }, {}],
  ["an empty list of types, and an empty enum", { type: [], enum: [] }, {}],
  ["numbers among the types", { type: [1, "string"] }, { type: ["string"] }],
  ["properties that are not there", { properties: null, required: null }, {}],
  ["a property that is true", { properties: { a: true } }, { properties: { a: true } }],
  ["a boolean as a text", { additionalProperties: "false" }, { additionalProperties: false }],
  [
    "OpenAPI's nullable",
    { type: "string", nullable: true, enum: ["a"] },
    { type: ["string", "null"], enum: ["a", null] },
  ],
  [
    "nullable beside a reference",
    { $ref: "#/x", nullable: true },
    { anyOf: [{ $ref: "#/x" }, { type: ["null"] }] },
  ],
  [
    "draft 3's required",
    { properties: { a: { required: true } } },
    { properties: { a: {} }, required: ["a"] },
  ],
  [
    "draft 4's exclusive bounds",
    { minimum: 3, exclusiveMinimum: true, maximum: 5, exclusiveMaximum: false },
    { exclusiveMinimum: 3, maximum: 5 },
  ],
  [
    "draft 7's tuples",
    { items: [{ type: "null" }], additionalItems: false },
    { prefixItems: [{ type: ["null"] }], items: false },
  ],
  ["numbers as texts", { minLength: "5", maximum: "x" }, { minLength: 5 }],
  ["a const that is undefined", { const: undefined }, {}],
  ["unknown keywords and annotations", { title: "x", default: 1, foo: 2 }, {}],
  ["what is not a schema", 7, true],
])("%s", (_, schema, normalized) => {
  expect(new SchemaDocument(schema).root).toEqual(normalized);
});

test("keywords with invalid values are reported as ignored, but not ones that are converted or empty", () => {
  const { ignored } = new SchemaDocument({
    properties: { a: { type: "STRING" }, b: { type: "strin" }, c: 7, d: { enum: [], type: null } },
    minProperties: "x",
    maxProperties: "2",
    required: null,
  });
  expect(ignored.map(({ path, keyword }) => [path, keyword])).toEqual([
    ["properties.b", "type"],
    ["properties", "c"],
    ["", "minProperties"],
  ]);
});

test("the order of properties is preserved, even of __proto__", () => {
  const schema: unknown = JSON.parse('{"properties": {"b": {}, "__proto__": {}, "a": {}}}');
  expect(JSON.stringify(new SchemaDocument(schema).root)).toBe(
    '{"properties":{"b":{},"__proto__":{},"a":{}}}',
  );
});

test("a cyclic schema object is normalized", () => {
  const schema: Record<string, unknown> = { type: "object" };
  schema.properties = { a: schema };
  expect(new SchemaDocument(schema).root).toMatchObject({ type: ["object"] });
});
