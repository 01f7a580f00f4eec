import Anthropic, { AuthenticationError, NotFoundError } from "@anthropic-ai/sdk";
import { describe, expect, test } from "vitest";
import { ServiceError } from "../../../../src/errors/service-error.ts";
import type { GenerationEvent } from "../../../../src/engine/protocol/generation.ts";
import { fakeModel } from "../../inference/fake-engine.ts";
import { randomSource } from "../../inference/random-pieces.ts";
import {
  failing,
  PLAIN_TEXT,
  randomAnswer,
  randomFailure,
  STOP,
  THINKING_AND_TOOLS,
} from "../recorded-events.ts";
import { fetchOf, sseEvents, testApp, type TestApp } from "../test-app.ts";

const PATH = "/v1/messages";
const messages = [{ role: "user" as const, content: "hi" }];
const BASE = { model: "fake", max_tokens: 100, messages };
const PNG = Buffer.from("89504e470d0a1a0a", "hex").toString("base64");
const TOOL = { name: "get_weather", input_schema: { type: "object" as const } };

function clientOf(all: TestApp): Anthropic {
  return new Anthropic({
    baseURL: "http://daybreak.test",
    apiKey: "any",
    fetch: fetchOf(all),
    maxRetries: 0,
  });
}

function stopped(stopSequence: string): GenerationEvent[] {
  return PLAIN_TEXT.map((event) => (event.type === "done" ? { ...event, stopSequence } : event));
}

describe("a whole message", () => {
  test("has its blocks in order", async () => {
    const answer = await testApp({ events: THINKING_AND_TOOLS }).post(PATH, BASE);
    expect(answer.headers.get("request-id")).toBe(answer.headers.get("x-request-id"));
    expect(await answer.json()).toEqual({
      id: expect.stringMatching(/^msg_/),
      type: "message",
      role: "assistant",
      model: "fake",
      content: [
        { type: "thinking", thinking: "The user wants the weather.", signature: expect.stringMatching(/./) },
        { type: "text", text: "Let me look — “ok”." },
        { type: "tool_use", id: "toolu_a", name: "get_weather", input: { city: "Köln" } },
        { type: "tool_use", id: "toolu_b", name: "get_time", input: {} },
      ],
      stop_reason: "tool_use",
      stop_sequence: null,
      usage: {
        input_tokens: 24,
        output_tokens: 31,
        cache_creation_input_tokens: 0,
        cache_read_input_tokens: 0,
      },
    });
  });

  test.for<[string, GenerationEvent[], string, string | null]>([
    ["a natural end", [...PLAIN_TEXT], "end_turn", null],
    ["a stop sequence of the request", stopped("END"), "stop_sequence", "END"],
    ["a stop of the model's own", stopped("<|end|>"), "end_turn", null],
    [
      "its length",
      PLAIN_TEXT.map((event) => (event.type === "done" ? { ...event, reason: "length" } : event)),
      "max_tokens",
      null,
    ],
  ])("says that it ended by %s", async ([, events, reason, sequence]) => {
    const body = { ...BASE, stop_sequences: ["END"] };
    const whole = await clientOf(testApp({ events })).messages.create(body);
    const streamed = await clientOf(testApp({ events })).messages.stream(body).finalMessage();
    for (const message of [whole, streamed]) {
      expect([message.stop_reason, message.stop_sequence]).toEqual([reason, sequence]);
    }
  });

  test("shows arguments that were cut off as an empty object", async () => {
    const events: GenerationEvent[] = [
      { type: "start" },
      { type: "tool-call-start", index: 0, id: "call_a", name: "add" },
      { type: "tool-call-delta", index: 0, arguments: '{"a": 1' },
      ...PLAIN_TEXT.flatMap((event) =>
        event.type === "done" ? [{ ...event, reason: "length" as const }] : [],
      ),
    ];
    const message = await clientOf(testApp({ events })).messages.create(BASE);
    expect(message.content).toEqual([{ type: "tool_use", id: "toolu_a", name: "add", input: {} }]);
  });
});

describe("a stream", () => {
  test("has every event, named as its type, in order", async () => {
    const answer = await testApp({ events: THINKING_AND_TOOLS }).post(`${PATH}?beta=true`, {
      ...BASE,
      stream: true,
    });
    expect(answer.headers.get("request-id")).toBeTruthy();
    const events = (await sseEvents(answer)).map(({ event, data }) => ({ event, data: JSON.parse(data) }));
    expect(events.every(({ event, data }) => event === data.type)).toBe(true);
    expect(
      events.map(({ data }) =>
        [data.type, data.index, data.content_block?.type ?? data.delta?.type].filter(
          (part) => part !== undefined,
        ),
      ),
    ).toEqual([
      ["message_start"],
      ["ping"],
      ["content_block_start", 0, "thinking"],
      ["content_block_delta", 0, "thinking_delta"],
      ["content_block_delta", 0, "thinking_delta"],
      ["content_block_delta", 0, "signature_delta"],
      ["content_block_stop", 0],
      ["content_block_start", 1, "text"],
      ["content_block_delta", 1, "text_delta"],
      ["content_block_delta", 1, "text_delta"],
      ["content_block_stop", 1],
      ["content_block_start", 2, "tool_use"],
      ["content_block_delta", 2, "input_json_delta"],
      ["content_block_delta", 2, "input_json_delta"],
      ["content_block_stop", 2],
      ["content_block_start", 3, "tool_use"],
      ["content_block_delta", 3, "input_json_delta"],
      ["content_block_stop", 3],
      ["message_delta"],
      ["message_stop"],
    ]);
    expect(events[0]?.data.message).toEqual({
      id: expect.stringMatching(/^msg_/),
      type: "message",
      role: "assistant",
      model: "fake",
      content: [],
      stop_reason: null,
      stop_sequence: null,
      usage: expect.objectContaining({ input_tokens: 24, output_tokens: 0 }),
    });
    expect(events.at(-2)?.data).toEqual({
      type: "message_delta",
      delta: { stop_reason: "tool_use", stop_sequence: null },
      usage: expect.objectContaining({ input_tokens: 24, output_tokens: 31 }),
    });
  });

  test("folds to the whole message in the official client, whatever its shape", async () => {
    const random = randomSource(13);
    const body = { ...BASE, stop_sequences: [STOP] };
    for (let round = 0; round < 60; round += 1) {
      // Of a call that is cut off, what the client makes of its pieces is its own affair.
      const client = clientOf(testApp({ events: randomAnswer(random, { cutCalls: false }) }));
      const { id: _whole, ...whole } = await client.messages.create(body);
      const { id: _streamed, ...streamed } = await client.messages.stream(body).finalMessage();
      expect(streamed).toMatchObject(structuredClone({ ...whole, content: whole.content }));
      expect(streamed.content).toHaveLength(whole.content.length);
    }
  });

  test("that fails anywhere ends with the error, as the whole message does", async () => {
    const random = randomSource(14);
    const error = new ServiceError("engine_crashed", "It is gone.");
    for (let round = 0; round < 40; round += 1) {
      const all = testApp();
      all.engine.script = () => randomFailure(random, error);
      const raised = { error: { error: { code: "engine_crashed" } } };
      await expect(clientOf(all).messages.create(BASE)).rejects.toMatchObject(raised);
      await expect(clientOf(all).messages.stream(BASE).finalMessage()).rejects.toMatchObject(raised);
      const answer = await all.post(PATH, { ...BASE, stream: true });
      if (answer.status !== 200) continue;
      const names = (await sseEvents(answer)).map(({ event }) => event);
      expect(names.at(-1)).toBe("error");
      expect(names).not.toContain("message_stop");
    }
  });

  test("that fails throws in the official client", async () => {
    const all = testApp();
    all.engine.script = () => failing(new ServiceError("engine_crashed", "It is gone."));
    await expect(clientOf(all).messages.stream(BASE).finalMessage()).rejects.toThrow("It is gone.");
    const events = await sseEvents(await all.post(PATH, { ...BASE, stream: true }));
    expect(events.at(-1)?.event).toBe("error");
    expect(JSON.parse(events.at(-1)?.data ?? "")).toEqual({
      type: "error",
      error: { type: "api_error", message: "It is gone.", code: "engine_crashed" },
      request_id: expect.any(String),
    });
  });

  test("that its client aborts is cancelled", async () => {
    const all = testApp();
    const stream = await clientOf(all).messages.create({ ...BASE, stream: true });
    await stream[Symbol.asyncIterator]().next();
    stream.controller.abort();
    await expect.poll(() => all.metrics.totals.activeRequests).toBe(0);
    expect(all.engine.inFlight).toBe(0);
  });
});

describe("a request", () => {
  test("is passed on block by block", async () => {
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
  ])("%s", async ([, fields, input]) => {
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
  ])("that cannot be: %s", async ([, fields]) => {
    const answer = await testApp().post(PATH, { ...BASE, ...fields });
    expect(answer.status).toBe(400);
    expect(await answer.json()).toMatchObject({ type: "error", error: { type: "invalid_request_error" } });
  });
});

function request(all: TestApp, model = "fake") {
  return clientOf(all).messages.create({ ...BASE, model });
}

test("a model that cannot think overlooks adaptive thinking, and refuses what is asked of it", async () => {
  const all = testApp({ model: fakeModel() });
  expect((await all.post(PATH, { ...BASE, thinking: { type: "adaptive" } })).status).toBe(200);
  const answer = await all.post(PATH, { ...BASE, thinking: { type: "enabled", budget_tokens: 1024 } });
  expect(answer.status).toBe(400);
  expect(await answer.json()).toMatchObject({ error: { code: "unsupported_feature" } });
});

describe("errors", () => {
  test("have the classes of the official client, and the id of the request", async () => {
    const error = await request(testApp(), "other").catch((thrown: unknown) => thrown);
    expect(error).toBeInstanceOf(NotFoundError);
    expect(error).toMatchObject({
      status: 404,
      requestID: expect.any(String),
      error: { type: "error", error: { type: "not_found_error", code: "model_not_found" } },
    });
    await expect(request(testApp({ config: { api_keys: ["secret"] } }))).rejects.toThrow(AuthenticationError);
    const busy = testApp({ slots: 1, config: { models: { queue_size: 0 } } });
    const held = await busy.post(PATH, { ...BASE, stream: true });
    await expect(request(busy)).rejects.toMatchObject({
      status: 529,
      error: { error: { type: "overloaded_error" } },
    });
    await held.body?.cancel();
  });

  test("of the middleware have the same shape", async () => {
    const all = testApp({ config: { http: { body_limit: 1024 } } });
    const answer = await all.post(PATH, { ...BASE, system: "x".repeat(2000) });
    expect(answer.status).toBe(413);
    expect(await answer.json()).toMatchObject({ type: "error", error: { type: "request_too_large" } });
    expect((await all.app.request(PATH)).status).toBe(405);
  });
});
