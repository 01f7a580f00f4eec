import { describe, expect, test } from "vitest";
import { callSchema } from "../../../../src/inference/tool-calls/forced-calls.ts";

describe("the schema of calls", () => {
  const tools = [
    { name: "now" },
    {
      name: "find",
      parameters: {
        properties: { city: { $ref: "#/$defs/city" }, near: { type: "array", items: { $ref: "#" } } },
        $defs: { city: { enum: ["Rome", "#/$defs/city"] } },
      },
    },
  ];

  test("permits one call of any tool, its name before its arguments", () => {
    const schema = callSchema(tools);
    expect(JSON.stringify(schema)).toMatch(
      /^\{"anyOf":\[\{"type":"object","properties":\{"name":\{"const":"now"\}/,
    );
    expect(schema["anyOf"]).toHaveLength(2);
    expect(schema["anyOf"]).toMatchObject([
      {
        properties: { arguments: { type: "object", properties: {}, additionalProperties: false } },
        required: ["name", "arguments"],
        additionalProperties: false,
      },
      { properties: { name: { const: "find" } } },
    ]);
  });

  test("moves the references of a tool's schema, and nothing that only looks like one", () => {
    const schema = callSchema(tools);
    expect(schema["anyOf"]).toMatchObject([
      {},
      {
        properties: {
          arguments: {
            properties: {
              city: { $ref: "#/anyOf/1/properties/arguments/$defs/city" },
              near: { items: { $ref: "#/anyOf/1/properties/arguments" } },
            },
            $defs: { city: { enum: ["Rome", "#/$defs/city"] } },
          },
        },
      },
    ]);
  });
});

test("the schema permits either, with the references of both in place", () => {
  const answer = { $ref: "#/$defs/sum", $defs: { sum: { type: "number" } } };
  const { anyOf } = callSchema([{ name: "now" }], answer);
  expect(anyOf).toMatchObject([{ properties: { name: { const: "now" } } }, { $ref: "#/anyOf/1/$defs/sum" }]);
});
