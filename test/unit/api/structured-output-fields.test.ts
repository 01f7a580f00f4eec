import { describe, expect, test } from "vitest";
import { testApp } from "../../support/test-app.ts";

const PATHS = {
  "/v1/chat/completions": { messages: [{ role: "user", content: "hi" }] },
  "/v1/completions": { prompt: "hi" },
  "/api/generate": { prompt: "hi" },
};

/** Any GBNF grammar; other tests check the grammar itself. */
const ANY: string = expect.any(String);

describe("structured-output fields of other servers", () => {
  test.for<[string, unknown, string]>([
    ["grammar", 'root ::= "a"', 'root ::= "a"'],
    ["regex", "a", 'root ::= text\ntext ::= "a"\n'],
    ["json_schema", { type: "number" }, ANY],
    ["guided_json", '{"type":"number"}', ANY],
    ["guided_regex", "a", 'root ::= text\ntext ::= "a"\n'],
    ["guided_choice", ["a"], 'root ::= text\ntext ::= "a"\n'],
    ["guided_grammar", 'root ::= a_b\na_b ::= "x"', 'root ::= a-b\na-b ::= "x"'],
    ["structured_outputs", { json: { type: "number" } }, ANY],
    ["structured_outputs", { regex: "a" }, ANY],
    ["structured_outputs", { choice: ["a"] }, ANY],
    ["structured_outputs", { grammar: 'start: "a"' }, ANY],
    ["structured_outputs", { json_object: true }, ANY],
  ])("%s works in every API", async ([field, value, grammar]) => {
    for (const [path, body] of Object.entries(PATHS)) {
      const all = testApp();
      expect((await all.post(path, { ...body, [field]: value })).status).toBe(200);
      // Schemas have been converted to grammars.
      expect(all.lastRequest().format).toMatchObject({ type: "grammar", grammar });
    }
  });

  test("rejects a second format by its name", async () => {
    const answer = await testApp().post("/v1/completions", {
      prompt: "hi",
      regex: "a",
      guided_choice: ["b"],
    });
    expect(answer.status).toBe(400);
    expect(await answer.text()).toContain("guided_choice: cannot be combined with regex; send one format.");
  });

  test.for<[string, Record<string, unknown>]>([
    ["grammar", { grammar: "root ::= (" }],
    ["guided_grammar", { guided_grammar: "root ::= (" }],
    ["structured_outputs.grammar", { structured_outputs: { grammar: "root ::= (" } }],
    ["response_format.grammar", { response_format: { type: "grammar", grammar: "root ::= (" } }],
  ])("rejects an invalid grammar by its field, %s", async ([param, fields]) => {
    const answer = await testApp().post("/v1/chat/completions", {
      ...PATHS["/v1/chat/completions"],
      ...fields,
    });
    expect(answer.status).toBe(400);
    expect(await answer.json()).toMatchObject({
      error: {
        param,
        message: expect.stringContaining(`${param}: cannot be enforced: it needs ")" in line 1`),
      },
    });
  });

  test.for<[Record<string, unknown>, string]>([
    [{ guided_regex: String.raw`(a)\1` }, "guided_regex: cannot be enforced: it has"],
    [
      { response_format: { type: "regex", pattern: "(" } },
      "response_format.pattern: cannot be enforced: it has",
    ],
    [{ guided_grammar: "x" }, "guided_grammar: cannot be enforced: it has x where a definition should begin"],
    [{ guided_json: "nonsense" }, "guided_json: must be a JSON Schema, which is an object."],
    [{ guided_json: "[".repeat(5000) }, "levels deep at most"],
    [{ guided_choice: [] }, "guided_choice"],
    [{ structured_outputs: { structural_tag: "x" } }, "structured_outputs.structural_tag: is not supported"],
    [{ regex: "a", tools: [{ type: "function", function: { name: "f" } }] }, "cannot be combined with tools"],
  ])("rejects %j where it is not supported", async ([fields, why]) => {
    const answer = await testApp().post("/v1/chat/completions", {
      ...PATHS["/v1/chat/completions"],
      ...fields,
    });
    expect(answer.status).toBe(400);
    expect(await answer.text()).toContain(why);
  });
});
