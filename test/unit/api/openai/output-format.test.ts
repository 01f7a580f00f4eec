import { describe, expect, test } from "vitest";
import { compileSchema } from "../../../../src/grammar/compile-grammar.ts";
import { testApp } from "../../../support/test-app.ts";
import { PLAIN_TEXT } from "../recorded-events.ts";
import { messages, PATH, TOOL } from "./chat-client.ts";

const SCHEMA = { type: "object", properties: { city: { type: "string" } } };
const GRAMMAR = 'root ::= "yes" | "no"';
const BY_SCHEMA = { type: "json_schema", schema: SCHEMA };
const BY_GRAMMAR = { type: "grammar", grammar: GRAMMAR };

const fitting = (schema: object): object => ({
  type: "grammar",
  grammar: compileSchema(schema, { allowsUndeclared: false }).grammar,
  isJson: true,
});

const FORMATS: readonly [string, object, object][] = [
  [
    "the schema of a json_object (llama.cpp, Together, Fireworks)",
    { response_format: { type: "json_object", schema: SCHEMA } },
    fitting(SCHEMA),
  ],
  ["a json_object without one", { response_format: { type: "json_object" } }, fitting({ type: "object" })],
  ["the schema of a json_schema, without a wrapper", { response_format: BY_SCHEMA }, fitting(SCHEMA)],
  [
    "the schema of a json_schema, in its wrapper",
    { response_format: { type: "json_schema", json_schema: { name: "city", schema: SCHEMA } } },
    fitting(SCHEMA),
  ],
  [
    "a grammar (Fireworks)",
    { response_format: BY_GRAMMAR },
    { ...BY_GRAMMAR, param: "response_format.grammar" },
  ],
  ["a grammar in its own field (llama-server)", { grammar: GRAMMAR }, BY_GRAMMAR],
  ["a schema in its own field (llama-server)", { json_schema: SCHEMA }, fitting(SCHEMA)],
  ["no format beside an empty grammar", { grammar: "" }, { type: "text" }],
];

const PROMPTS: readonly [string, object][] = [
  [PATH, { messages }],
  ["/v1/completions", { prompt: "Once" }],
];

describe.each(PROMPTS)("the output format at %s", (path, body) => {
  test.each(FORMATS)("is %s", async (_, format, expected) => {
    const all = testApp({ events: PLAIN_TEXT });
    expect((await all.post(path, { ...body, ...format })).status).toBe(200);
    expect(all.lastRequest().format).toEqual(expected);
  });

  test.each<[string, object, string]>([
    ["two formats", { response_format: { type: "json_object" }, grammar: GRAMMAR }, "grammar"],
    ["two schemas", { response_format: BY_SCHEMA, json_schema: SCHEMA }, "json_schema"],
    [
      "a json_schema without a schema",
      { response_format: { type: "json_schema" } },
      "response_format.json_schema",
    ],
  ])("rejects %s", async (_, format, param) => {
    const answer = await testApp().post(path, { ...body, ...format });
    expect(answer.status).toBe(400);
    expect(await answer.json()).toMatchObject({ error: { param } });
  });
});

test("a grammar cannot be combined with tools, unless tool_choice is none", async () => {
  const all = testApp({ events: PLAIN_TEXT });
  const body = { messages, grammar: GRAMMAR, tools: [TOOL] };
  const answer = await all.post(PATH, body);
  expect(answer.status).toBe(400);
  expect(await answer.json()).toMatchObject({ error: { param: "grammar" } });
  expect((await all.post(PATH, { ...body, tool_choice: "none" })).status).toBe(200);
});

test.each([
  ["/v1/chat/completions", { messages: [{ role: "user", content: "hi" }], verbosity: "low" }],
  ["/v1/responses", { input: "hi", text: { verbosity: "high" } }],
])("%s warns that verbosity is not supported", async (path, body) => {
  const answer = await testApp().post(path, body);
  expect(answer.status).toBe(200);
  expect(answer.headers.get("x-daybreak-warning")).toContain("verbosity is not supported");
});

test("medium verbosity causes no warning", async () => {
  const body = { messages: [{ role: "user", content: "hi" }], verbosity: "medium" };
  const answer = await testApp().post("/v1/chat/completions", body);
  expect(answer.headers.get("x-daybreak-warning")).toBeNull();
});
