import { AuthenticationError, InternalServerError, NotFoundError } from "openai";
import { describe, expect, test } from "vitest";
import { eventsOf } from "../../../support/fake-engine.ts";
import { fakeModel } from "../../../support/fake-models.ts";
import { testApp, type TestApp } from "../../../support/test-app.ts";
import { endless } from "../../inference/inference-setup.ts";
import { chunksOf, clientOf, messages, PATH, TOOL } from "./chat-client.ts";

const PNG = Buffer.from("89504e470d0a1a0a", "hex").toString("base64");
const IMAGE_URL = `data:image/png;base64,${PNG}`;

describe("a chat completion request", () => {
  test("accepts top_k -1 for no limit", async () => {
    const all = testApp();
    expect((await all.post(PATH, { messages, top_k: -1 })).status).toBe(200);
    expect(all.lastRequest().sampling.topK).toBe(0);
    expect((await all.post(PATH, { messages, top_k: -2 })).status).toBe(400);
  });

  test("passes every field to the engine", async () => {
    const all = testApp();
    await clientOf(all).chat.completions.create({
      model: "fake",
      messages: [
        { role: "developer", content: [{ type: "text", text: "Be kind." }] },
        {
          role: "user",
          content: [
            { type: "image_url", image_url: { url: IMAGE_URL, detail: "low" } },
            { type: "text", text: "What is it?" },
          ],
        },
        {
          role: "assistant",
          content: null,
          tool_calls: [{ id: "c1", type: "function", function: { name: "look", arguments: '{"a":1}' } }],
        },
        { role: "tool", tool_call_id: "c1", content: "a cat" },
        { role: "user", content: "Sure?", name: "Ann" },
      ],
      max_completion_tokens: 5,
      max_tokens: 9,
      temperature: 0.2,
      top_p: 0.3,
      presence_penalty: 0.4,
      frequency_penalty: 0.5,
      logit_bias: { "12": -100 },
      seed: 3,
      stop: "END",
      tools: [TOOL],
      tool_choice: { type: "function", function: { name: "get_weather" } },
      parallel_tool_calls: false,
      response_format: {
        type: "json_schema",
        json_schema: { name: "x", strict: true, schema: { type: "object" } },
      },
      reasoning_effort: "low",
      user: "me",
      metadata: { a: "b" },
      store: true,
    });
    expect(all.lastRequest()).toEqual({
      input: {
        kind: "chat",
        messages: [
          { role: "system", content: [{ type: "text", text: "Be kind." }] },
          {
            role: "user",
            content: [
              { type: "image", data: new Uint8Array(Buffer.from(PNG, "base64")) },
              { type: "text", text: "What is it?" },
            ],
          },
          { role: "assistant", content: [], toolCalls: [{ id: "c1", name: "look", arguments: '{"a":1}' }] },
          { role: "tool", content: [{ type: "text", text: "a cat" }], toolCallId: "c1" },
          { role: "user", content: [{ type: "text", text: "Sure?" }], name: "Ann" },
        ],
        continueLast: false,
        tools: [
          {
            name: "get_weather",
            parameters: { type: "object" },
            param: "tools.0.function.parameters",
          },
        ],
        toolChoice: "none",
        parallelToolCalls: false,
        thinking: true,
        templateVariables: { reasoning_effort: "low" },
      },
      maxTokens: 5,
      stop: ["END"],
      sampling: {
        temperature: 0.2,
        topP: 0.3,
        topK: 40,
        presencePenalty: 0.4,
        frequencyPenalty: 0.5,
        logitBias: [{ token: 12, bias: -100 }],
        seed: 3,
      },
      format: {
        type: "json_schema",
        schema: { anyOf: [expect.objectContaining({ required: ["name", "arguments"] })] },
      },
      // The thinking budget is at most four fifths of the answer.
      reasoning: { budget: 4 },
      cachePrompt: true,
    });
  });

  test("has no limits by default; null is the same as absent", async () => {
    const all = testApp();
    await all.post(PATH, {
      messages,
      max_tokens: null,
      temperature: null,
      stop: null,
      tools: null,
      n: null,
      stream: null,
    });
    expect(all.lastRequest()).not.toHaveProperty("maxTokens");
    expect(all.lastRequest().sampling).toMatchObject({ temperature: 0.7, topP: 0.9, topK: 40 });
  });

  test("accepts the unusual forms that frameworks send", async () => {
    const all = testApp();
    const call = { id: "c1", type: "function", function: { name: "look", arguments: "" } };
    const answer = await all.post(PATH, {
      messages: [
        { role: "system", content: null },
        { role: "user", content: null, name: null },
        { role: "assistant", tool_calls: [call], function_call: null, audio: null },
        { role: "tool", tool_call_id: "c1", name: "look", content: [{ type: "text", text: "a cat" }] },
        { role: "tool", tool_call_id: "c2", content: null },
        {
          role: "tool",
          tool_call_id: "c3",
          content: [{ type: "image_url", image_url: IMAGE_URL }],
        },
        { role: "assistant", content: null, tool_calls: null },
        { role: "user", content: "hi" },
      ],
      max_tokens: -1,
      stop: ["", "END"],
      tools: [],
      functions: [],
      tool_choice: "auto",
      response_format: { type: "text" },
      logprobs: false,
      stream_options: null,
    });
    expect(answer.status).toBe(200);
    const { input, stop } = all.lastRequest();
    expect(stop).toEqual(["END"]);
    expect(all.lastRequest()).not.toHaveProperty("maxTokens");
    expect(input).toMatchObject({
      messages: [
        { role: "system", content: [] },
        { role: "user", content: [] },
        { role: "assistant", toolCalls: [{ arguments: "{}" }] },
        { role: "tool", content: [{ text: "a cat" }] },
        { role: "tool", content: [] },
        { role: "tool", content: [{ type: "image" }] },
        { role: "assistant", content: [] },
        { role: "user", content: [{ text: "hi" }] },
      ],
    });
  });

  test.for<[string, object, object]>([
    ["effort none", { reasoning_effort: "none" }, { thinking: false }],
    ["a template variable", { chat_template_kwargs: { enable_thinking: false } }, { thinking: false }],
    ["the variable as a field", { enable_thinking: true }, { thinking: true }],
    [
      "an answer that continues the last message",
      {
        messages: [...messages, { role: "assistant", content: "So" }],
        add_generation_prompt: false,
        response_format: { type: "json_object" },
      },
      { continueLast: true },
    ],
    [
      "allowed tools",
      {
        tools: [TOOL, { type: "function", function: { name: "other" } }],
        tool_choice: {
          type: "allowed_tools",
          allowed_tools: { mode: "required", tools: [{ type: "function", function: { name: "other" } }] },
        },
      },
      { tools: [{ name: "other" }] },
    ],
  ])("converts %s", async ([, fields, input]) => {
    const all = testApp();
    await all.post(PATH, { messages, ...fields });
    expect(all.lastRequest().input).toMatchObject(input);
  });

  test.for<[string, object, string]>([
    ["no messages", { messages: [] }, "messages"],
    ["top_logprobs without logprobs", { top_logprobs: 2 }, "top_logprobs"],
    ["a bias of no token", { logit_bias: { hello: 1 } }, "logit_bias.hello"],
    ["a bias of a token that the model does not have", { logit_bias: { 100: 1 } }, "logit_bias.100"],
    ["no token at all", { max_tokens: 0 }, "max_tokens"],
    [
      "audio that is missing",
      { messages: [{ role: "user", content: [{ type: "input_audio", input_audio: {} }] }] },
      "messages[0].content[0].input_audio.data",
    ],
    [
      "a file",
      { messages: [{ role: "user", content: [{ type: "file", file: {} }] }] },
      "messages[0].content[0]",
    ],
    ["a chat that is not to be answered", { add_generation_prompt: false }, "add_generation_prompt"],
    ["calls as text", { parse_tool_calls: false }, "parse_tool_calls"],
    ["audio out", { modalities: ["text", "audio"] }, "modalities"],
    ["a search of the web", { web_search_options: {} }, "web_search_options"],
    ["a tool of another kind", { tools: [{ type: "web_search" }] }, "tools[0].type"],
    ["a required call without tools", { tool_choice: "required" }, "tool_choice"],
    [
      "an address",
      {
        messages: [{ role: "user", content: [{ type: "image_url", image_url: { url: "http://a/b.png" } }] }],
      },
      "messages[0].content[0].image_url.url",
    ],
  ])("rejects %s", async ([, fields, param]) => {
    const answer = await testApp().post(PATH, { messages, ...fields });
    expect(answer.status).toBe(400);
    expect(await answer.json()).toMatchObject({ error: { type: "invalid_request", param } });
  });
});

function request(all: TestApp, model = "fake") {
  return clientOf(all).chat.completions.create({ model, messages });
}

describe("errors", () => {
  test("raise the official client's error classes", async () => {
    await expect(request(testApp(), "other")).rejects.toThrow(NotFoundError);
    await expect(request(testApp(), "other")).rejects.toMatchObject({ code: "model_not_found", param: null });
    const keyed = testApp({ config: { api_keys: ["secret"] } });
    await expect(request(keyed)).rejects.toThrow(AuthenticationError);
    const busy = testApp({ slots: 1, config: { models: { queue_size: 0 } } });
    busy.engine.script = endless;
    const held = await busy.post(PATH, { messages, stream: true });
    await expect(request(busy)).rejects.toThrow(InternalServerError);
    await held.body?.cancel();
  });

  test("tell the client not to retry permanent errors", async () => {
    const all = testApp({ model: fakeModel() });
    const answer = await all.post(PATH, { messages, tools: [TOOL] });
    expect(answer.status).toBe(400);
    expect(answer.headers.get("x-should-retry")).toBe("false");
    expect(await answer.json()).toMatchObject({ error: { code: "unsupported_feature", param: "tools" } });
  });

  test("of unknown routes have the same format", async () => {
    const answer = await testApp().app.request("/v1/nothing");
    expect(answer.status).toBe(404);
    expect(await answer.json()).toMatchObject({ error: { code: "route_not_found", param: null } });
  });
});

function speaking(): TestApp {
  const all = testApp();
  all.engine.script = async function* () {
    yield* eventsOf("Hello");
  };
  return all;
}

describe("a chat with n_predict 0, which llama.vim sends to fill the cache", () => {
  test("returns an answer without text", async () => {
    const all = speaking();
    const body = { messages, n_predict: 0, samplers: [], response_fields: [""], id_slot: 0, tools: [TOOL] };
    const answer = await all.post(PATH, body);
    expect(answer.status).toBe(200);
    expect(await answer.json()).toMatchObject({
      choices: [{ message: { content: "" }, finish_reason: "length" }],
      usage: { completion_tokens: 0 },
    });
    expect(all.lastRequest().maxTokens).toBe(1);
  });

  test("streams an answer without text", async () => {
    const answer = await speaking().post(PATH, { messages, n_predict: 0, stream: true });
    const data = (await answer.text())
      .split("\n\n")
      .filter((event) => event.startsWith("data: "))
      .map((event) => ({ data: event.slice("data: ".length) }));
    const choices = chunksOf(data).flatMap((chunk) => chunk.choices);
    expect(choices.filter(({ delta }) => delta.content)).toEqual([]);
    expect(choices.at(-1)?.finish_reason).toBe("length");
  });

  test("is rejected under OpenAI's names of the limit", async () => {
    expect((await speaking().post(PATH, { messages, max_completion_tokens: 0 })).status).toBe(400);
  });
});
