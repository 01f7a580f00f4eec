import { describe, expect, test } from "vitest";
import { testApp } from "../../support/test-app.ts";

const messages = [{ role: "user", content: "hi" }];
/** Schema that nothing matches. */
const EMPTY = {
  type: "object",
  properties: { a: { type: "string", minLength: 2, maxLength: 1 } },
  required: ["a"],
};
/** Schema with an unresolvable reference. */
const LOST = { type: "object", properties: { a: { $ref: "https://a.test/b.json" } } };
const WEATHER = { type: "function", function: { name: "weather", parameters: { type: "object" } } };
const named = (parameters: object, strict = false): object => ({
  type: "function",
  function: { name: "add", parameters, strict },
});
const WHY = /No value can fit properties\.a: /;

describe("an error in a JSON schema names the request field, and the position within the schema in its message", () => {
  test.each<[string, string, object, string, RegExp]>([
    [
      "the format of a chat completion",
      "/v1/chat/completions",
      { messages, response_format: { type: "json_schema", json_schema: { name: "x", schema: EMPTY } } },
      "response_format",
      /^Invalid schema for response_format: No value can fit properties\.a: /,
    ],
    [
      "a strict format",
      "/v1/chat/completions",
      {
        messages,
        response_format: { type: "json_schema", json_schema: { name: "x", schema: LOST, strict: true } },
      },
      "response_format",
      /^Invalid schema for response_format: properties\.a\.\$ref is not enforced: /,
    ],
    [
      "the second tool",
      "/v1/chat/completions",
      { messages, tools: [WEATHER, named(EMPTY)], tool_choice: "required" },
      "tools[1].function.parameters",
      /^Invalid schema for function 'add': No value can fit properties\.a: /,
    ],
    [
      "a strict tool that the model may call",
      "/v1/chat/completions",
      { messages, tools: [WEATHER, named(LOST, true)] },
      "tools[1].function.parameters",
      /^Invalid schema for function 'add': properties\.a\.\$ref is not enforced: /,
    ],
    [
      "a format beside tools",
      "/v1/chat/completions",
      {
        messages,
        tools: [WEATHER],
        response_format: { type: "json_schema", json_schema: { name: "x", schema: EMPTY, strict: true } },
      },
      "response_format",
      WHY,
    ],
    [
      "a function of the older form",
      "/v1/chat/completions",
      { messages, functions: [{ name: "add", parameters: EMPTY }], function_call: { name: "add" } },
      "functions[0].parameters",
      WHY,
    ],
    [
      "a field of vLLM",
      "/v1/chat/completions",
      { messages, guided_json: EMPTY },
      "guided_json",
      /^Invalid schema for guided_json: /,
    ],
    [
      "the format of a response",
      "/v1/responses",
      { input: "hi", text: { format: { type: "json_schema", name: "x", schema: EMPTY } } },
      "text.format.schema",
      WHY,
    ],
    [
      "a tool of a response, behind one that is left out",
      "/v1/responses",
      {
        input: "hi",
        tools: [{ type: "web_search" }, { type: "function", name: "add", parameters: EMPTY }],
        tool_choice: "required",
      },
      "tools[1].parameters",
      WHY,
    ],
    [
      "too large a format",
      "/v1/chat/completions",
      { messages, response_format: { type: "json_object", schema: { enum: Array(30_000).fill(1) } } },
      "response_format",
      /^The response_format may have at most /,
    ],
  ])("%s", async (_what, path, body, param, message) => {
    const answer = await testApp().post(path, body);
    expect(answer.status).toBe(400);
    expect(await answer.json()).toMatchObject({
      error: { code: "invalid_parameter", param, message: expect.stringMatching(message) },
    });
  });

  test.each([
    ["/v1/messages", { messages, max_tokens: 9, output_format: { type: "json_schema", schema: EMPTY } }],
    ["/api/chat", { messages, format: EMPTY }],
  ])("if the API has no field for it, the message names both: %s", async (path, body) => {
    const answer = await testApp().post(path, body);
    expect(answer.status).toBe(400);
    expect(await answer.text()).toMatch(
      /Invalid schema for (?:output_)?format: No value can fit properties\.a: /,
    );
  });
});
