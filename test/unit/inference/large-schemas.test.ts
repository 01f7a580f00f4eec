import { describe, expect, test } from "vitest";
import { longestTurn } from "../../support/longest-turn.ts";
import { testApp } from "../../support/test-app.ts";

const PATH = "/v1/chat/completions";
const messages = [{ role: "user", content: "hi" }];
const properties = (count: number, value: unknown): object =>
  Object.fromEntries(Array.from({ length: count }, (_, at) => [`p${at}`, value]));
const chain = (count: number): object =>
  Object.fromEntries(Array.from({ length: count }, (_, at) => [`d${at}`, { $ref: `#/$defs/d${at + 1}` }]));

const format = (schema: object): object => ({
  messages,
  response_format: { type: "json_schema", json_schema: { name: "x", schema } },
});
const tool = (parameters: object): object => ({
  messages,
  tools: [{ type: "function", function: { name: "f", parameters } }],
});

describe("a schema that is too large", () => {
  test.each([
    [
      "of an answer, with many values",
      format({ type: "object", enum: Array.from({ length: 30_000 }, () => "a") }),
    ],
    ["of a tool, by its values", tool({ type: "object", enum: Array.from({ length: 30_000 }, () => "a") })],
    ["of an answer, by optional properties", format({ properties: properties(2000, { type: "string" }) })],
    [
      "of a forced call",
      { ...tool({ properties: properties(2000, { type: "string" }) }), tool_choice: "required" },
    ],
  ])("%s, is refused with an explanation", async (_, body) => {
    const answer = await testApp().post(PATH, body);
    expect(await answer.json()).toMatchObject({
      error: { code: "invalid_parameter", message: expect.stringMatching(/too large|may have at most/) },
    });
    expect(answer.status).toBe(400);
  });

  test("with very many properties is refused before it blocks other requests for seconds", async () => {
    const body = format({ properties: properties(9900, { type: "string" }) });
    expect(await longestTurn(async () => await testApp().post(PATH, body))).toBeLessThan(3000);
  });

  test("does not fail a request whose tool call is optional", async () => {
    for (const parameters of [
      { properties: properties(2000, { type: "number", minimum: 1 }) },
      { $ref: "#/$defs/d0", $defs: { ...chain(4000), d4000: { type: "object" } } },
    ]) {
      expect((await testApp().post(PATH, tool(parameters))).status).toBe(200);
    }
  });
});
