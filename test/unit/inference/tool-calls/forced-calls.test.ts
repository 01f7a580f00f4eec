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

  test("allows one call of any tool, with its name before its arguments", () => {
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

  test("rewrites the references of a tool's schema, but not text that resembles one", () => {
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

test("the schema of a call or an answer has the references of both rewritten", () => {
  const answer = { $ref: "#/$defs/sum", $defs: { sum: { type: "number" } } };
  const { anyOf } = callSchema([{ name: "now" }], answer);
  expect(anyOf).toMatchObject([{ properties: { name: { const: "now" } } }, { $ref: "#/anyOf/1/$defs/sum" }]);
});
