import { AuthenticationError, NotFoundError } from "@anthropic-ai/sdk";
import { describe, expect, test } from "vitest";
import { fakeModel } from "../../../support/fake-models.ts";
import { testApp, type TestApp } from "../../../support/test-app.ts";
import { BASE, clientOf, messages, PATH } from "./message-client.ts";
import { endless } from "../../inference/inference-setup.ts";

const PNG = Buffer.from("89504e470d0a1a0a", "hex").toString("base64");
const TOOL = { name: "get_weather", input_schema: { type: "object" as const } };

describe("a message request", () => {
  test("passes all blocks to the engine", async () => {
    const all = testApp();
    await all.post(PATH, {
      model: "fake",
      max_tokens: 7,
      system: [
        { type: "text", text: "Be kind.", cache_control: { type: "ephemeral" } },
        { type: "text", text: "Be brief." },
      ],
      messages: [
        {
          role: "user",
          content: [
            { type: "image", source: { type: "base64", media_type: "image/png", data: PNG } },
            { type: "text", text: "What is it?" },
          ],
        },
        {
          role: "assistant",
          content: [
            { type: "thinking", thinking: "hm", signature: "whatever" },
            { type: "redacted_thinking", data: "???" },
            { type: "text", text: "I look." },
            { type: "tool_use", id: "t1", name: "look", input: { at: 1 } },
            { type: "tool_use", id: "t2", name: "smell", input: {} },
          ],
        },
        {
          role: "user",
          content: [
            { type: "tool_result", tool_use_id: "t1", content: "a cat" },
            {
              type: "tool_result",
              tool_use_id: "t2",
              content: [{ type: "text", text: "no nose" }],
              is_error: true,
            },
            { type: "text", text: "And now?" },
            {
              type: "document",
              title: "Cats",
              source: { type: "text", media_type: "text/plain", data: "Cats purr." },
            },
          ],
        },
      ],
      temperature: 0.5,
      top_p: 0.6,
      top_k: 7,
      stop_sequences: ["END"],
      tools: [{ ...TOOL, description: "Tells.", cache_control: { type: "ephemeral" } }],
      tool_choice: { type: "any", disable_parallel_tool_use: true },
      thinking: { type: "enabled", budget_tokens: 1024 },
      metadata: { user_id: "me" },
      output_config: { format: { type: "json_schema", schema: { type: "object" } }, effort: "high" },
    });
    expect(all.lastRequest()).toEqual({
      input: {
        kind: "chat",
        messages: [
          {
            role: "system",
            content: [
              { type: "text", text: "Be kind." },
              { type: "text", text: "Be brief." },
            ],
          },
          {
            role: "user",
            content: [
              { type: "image", data: new Uint8Array(Buffer.from(PNG, "base64")) },
              { type: "text", text: "What is it?" },
            ],
          },
          {
            role: "assistant",
            content: [{ type: "text", text: "I look." }],
            reasoning: "hm",
            toolCalls: [
              { id: "t1", name: "look", arguments: '{"at":1}' },
              { id: "t2", name: "smell", arguments: "{}" },
            ],
          },
          { role: "tool", toolCallId: "t1", content: [{ type: "text", text: "a cat" }] },
          {
            role: "tool",
            toolCallId: "t2",
            content: [
              { type: "text", text: "Error:" },
              { type: "text", text: "no nose" },
            ],
          },
          {
            role: "user",
            content: [
              { type: "text", text: "And now?" },
              { type: "text", text: "Cats\n\nCats purr." },
            ],
          },
        ],
        tools: [{ name: "get_weather", description: "Tells.", parameters: { type: "object" } }],
        toolChoice: "none",
        parallelToolCalls: false,
        thinking: true,
        templateVariables: { reasoning_effort: "high" },
      },
      maxTokens: 7,
      stop: ["END"],
      sampling: { temperature: 0.5, topP: 0.6, topK: 7 },
      format: {
        type: "json_schema",
        schema: { anyOf: [expect.objectContaining({ required: ["name", "arguments"] })] },
      },
      reasoning: { budget: 1024 },
      cachePrompt: true,
    });
  });

  test.for<[string, object, object]>([
    ["thinking is off unless asked for", {}, { thinking: false }],
    [
      "adaptive thinking is thinking for a model that can",
      { thinking: { type: "adaptive" } },
      { thinking: true, templateVariables: { reasoning_effort: "high" } },
    ],
    [
      "a named tool",
      { tools: [TOOL], tool_choice: { type: "tool", name: "get_weather" } },
      { toolChoice: "none", tools: [{ name: "get_weather" }] },
    ],
    [
      "documents of text blocks and search results",
      {
        mcp_servers: [],
        messages: [
          {
            role: "user",
            content: [
              {
                type: "document",
                source: { type: "content", content: [{ type: "text", text: "Cats purr." }] },
              },
              {
                type: "search_result",
                title: "Cats",
                source: "cats.org",
                content: [{ type: "text", text: "They sleep." }],
              },
            ],
          },
        ],
      },
      { messages: [{ content: [{ text: "Cats purr." }, { text: "Cats\n\ncats.org\n\nThey sleep." }] }] },
    ],
    ["no tool", { tools: [TOOL], tool_choice: { type: "none" } }, { toolChoice: "none" }],
    [
      "a system text",
      { system: "Be kind." },
      { messages: [{ role: "system", content: [{ text: "Be kind." }] }, { role: "user" }] },
    ],
    [
      "a started answer",
      { messages: [...messages, { role: "assistant", content: "Once" }] },
      { messages: [{ role: "user" }, { role: "assistant", content: [{ text: "Once" }] }] },
    ],
  ])("converts %s", async ([, fields, input]) => {
    const all = testApp();
    await all.post(PATH, { ...BASE, ...fields });
    expect(all.lastRequest().input).toMatchObject(input);
  });

  test.for<[string, object]>([
    ["no max_tokens", { max_tokens: undefined }],
    ["no messages", { messages: [] }],
    ["an unknown role", { messages: [{ role: "tool", content: "" }] }],
    ["an unknown block", { messages: [{ role: "user", content: [{ type: "video" }] }] }],
    [
      "a PDF",
      { messages: [{ role: "user", content: [{ type: "document", source: { type: "base64", data: "" } }] }] },
    ],
    [
      "an address",
      {
        messages: [
          { role: "user", content: [{ type: "image", source: { type: "url", url: "http://a/b" } }] },
        ],
      },
    ],
    ["a server's tool", { tools: [{ type: "web_search_20250305", name: "web_search" }] }],
    ["a tool without a schema", { tools: [{ name: "get_weather" }] }],
  ])("rejects %s", async ([, fields]) => {
    const answer = await testApp().post(PATH, { ...BASE, ...fields });
    expect(answer.status).toBe(400);
    expect(await answer.json()).toMatchObject({ type: "error", error: { type: "invalid_request_error" } });
  });
});

function request(all: TestApp, model = "fake") {
  return clientOf(all).messages.create({ ...BASE, model });
}

test("ignores adaptive thinking for a model without thinking, but rejects an explicit budget", async () => {
  const all = testApp({ model: fakeModel() });
  expect((await all.post(PATH, { ...BASE, thinking: { type: "adaptive" } })).status).toBe(200);
  const answer = await all.post(PATH, { ...BASE, thinking: { type: "enabled", budget_tokens: 1024 } });
  expect(answer.status).toBe(400);
  expect(await answer.json()).toMatchObject({ error: { code: "unsupported_feature" } });
});

describe("errors", () => {
  test("raise the official client's error classes, with the request ID", async () => {
    const error = await request(testApp(), "other").catch((thrown: unknown) => thrown);
    expect(error).toBeInstanceOf(NotFoundError);
    expect(error).toMatchObject({
      status: 404,
      requestID: expect.any(String),
      error: { type: "error", error: { type: "not_found_error", code: "model_not_found" } },
    });
    await expect(request(testApp({ config: { api_keys: ["secret"] } }))).rejects.toThrow(AuthenticationError);
    const busy = testApp({ slots: 1, config: { models: { queue_size: 0 } } });
    busy.engine.script = endless;
    const held = await busy.post(PATH, { ...BASE, stream: true });
    await expect(request(busy)).rejects.toMatchObject({
      status: 529,
      error: { error: { type: "overloaded_error" } },
    });
    await held.body?.cancel();
  });

  test("of the middleware have this API's format", async () => {
    const all = testApp({ config: { http: { body_limit: 1024 } } });
    const answer = await all.post(PATH, { ...BASE, system: "x".repeat(2000) });
    expect(answer.status).toBe(413);
    expect(await answer.json()).toMatchObject({ type: "error", error: { type: "request_too_large" } });
    expect((await all.app.request(PATH)).status).toBe(405);
  });
});
