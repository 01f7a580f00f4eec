import OpenAI, { AuthenticationError, InternalServerError, NotFoundError } from "openai";
import { describe, expect, test } from "vitest";
import type { z } from "zod";
import { chatCompletionChunkSchema } from "../../../../src/dialects/openai/chat-answer.ts";
import { ServiceError } from "../../../../src/errors/service-error.ts";
import { randomSource } from "../../inference/random-pieces.ts";
import { fakeModel } from "../../inference/fake-engine.ts";
import { failing, PLAIN_TEXT, randomAnswer, THINKING_AND_TOOLS, WITH_LOGPROBS } from "../recorded-events.ts";
import { fetchOf, sseEvents, testApp, type TestApp } from "../test-app.ts";

const PATH = "/v1/chat/completions";
const messages = [{ role: "user" as const, content: "hi" }];
const PNG = Buffer.from("89504e470d0a1a0a", "hex").toString("base64");
const IMAGE_URL = `data:image/png;base64,${PNG}`;
const TOOL = { type: "function" as const, function: { name: "get_weather", parameters: { type: "object" } } };

type Chunk = z.output<typeof chatCompletionChunkSchema>;

function clientOf(all: TestApp): OpenAI {
  return new OpenAI({
    baseURL: "http://daybreak.test/v1",
    apiKey: "any",
    fetch: fetchOf(all),
    maxRetries: 0,
  });
}

function chunksOf(events: readonly { data: string }[]): Chunk[] {
  expect(events.at(-1)?.data).toBe("[DONE]");
  return events.slice(0, -1).map(({ data }) => chatCompletionChunkSchema.strict().parse(JSON.parse(data)));
}

describe("a whole answer", () => {
  test("has the shape of the API", async () => {
    const answer = await testApp({ events: THINKING_AND_TOOLS }).post(PATH, { model: "fake", messages });
    expect(await answer.json()).toEqual({
      id: expect.stringMatching(/^chatcmpl-/),
      object: "chat.completion",
      created: expect.any(Number),
      model: "fake",
      choices: [
        {
          index: 0,
          message: {
            role: "assistant",
            content: "Let me look — “ok”.",
            refusal: null,
            reasoning_content: "The user wants the weather.",
            tool_calls: [
              {
                id: "call_a",
                type: "function",
                function: { name: "get_weather", arguments: '{"city":"Köln"}' },
              },
              { id: "call_b", type: "function", function: { name: "get_time", arguments: "{}" } },
            ],
          },
          logprobs: null,
          finish_reason: "tool_calls",
        },
      ],
      usage: {
        prompt_tokens: 24,
        completion_tokens: 31,
        total_tokens: 55,
        prompt_tokens_details: { cached_tokens: 8 },
        completion_tokens_details: { reasoning_tokens: 6 },
      },
    });
  });

  test("of tool calls alone has no content", async () => {
    const calls = THINKING_AND_TOOLS.filter(({ type }) => type !== "text-delta");
    const answer = await clientOf(testApp({ events: calls })).chat.completions.create({
      model: "fake",
      messages,
    });
    expect(answer.choices[0]?.message.content).toBeNull();
  });

  test("reports log-probabilities", async () => {
    const all = testApp({ events: WITH_LOGPROBS });
    const answer = await clientOf(all).chat.completions.create({
      model: "fake",
      messages,
      logprobs: true,
      top_logprobs: 1,
    });
    expect(all.lastRequest().logprobs).toBe(1);
    expect(answer.choices[0]?.logprobs?.content?.[0]).toEqual({
      token: "Hello",
      logprob: -0.5,
      bytes: [72, 101, 108, 108, 111],
      top_logprobs: [{ token: "x", logprob: -1, bytes: [120] }],
    });
  });
});

describe("a stream", () => {
  test("is role, pieces, finish and [DONE], and shows no usage unasked", async () => {
    const answer = await testApp({ events: PLAIN_TEXT }).post(PATH, { messages, stream: true });
    expect(answer.headers.get("content-type")).toContain("text/event-stream");
    expect(answer.headers.get("cache-control")).toBe("no-cache");
    const events = await sseEvents(answer);
    expect(events.every(({ event }) => event === undefined)).toBe(true);
    const head = {
      id: expect.stringMatching(/^chatcmpl-/),
      object: "chat.completion.chunk",
      created: expect.any(Number),
      model: "fake",
    };
    const chunk = (delta: object, finish: string | null = null) => ({
      ...head,
      choices: [{ index: 0, delta, finish_reason: finish }],
    });
    expect(chunksOf(events)).toEqual([
      chunk({ role: "assistant", content: "" }),
      chunk({ content: "Hello" }),
      chunk({ content: " world" }),
      chunk({}, "stop"),
    ]);
    expect(new Set(chunksOf(events).map(({ id }) => id)).size).toBe(1);
  });

  test("ends with the usage when it is asked for, which is null before", async () => {
    const answer = await testApp({ events: PLAIN_TEXT }).post(PATH, {
      messages,
      stream: true,
      stream_options: { include_usage: true },
    });
    const chunks = chunksOf(await sseEvents(answer));
    expect(chunks.slice(0, -1).every(({ usage }) => usage === null)).toBe(true);
    expect(chunks.at(-1)).toMatchObject({
      choices: [],
      usage: { prompt_tokens: 5, completion_tokens: 2, total_tokens: 7 },
    });
  });

  test("names a tool call once and sends its arguments in pieces", async () => {
    const answer = await testApp({ events: THINKING_AND_TOOLS }).post(PATH, { messages, stream: true });
    const deltas = chunksOf(await sseEvents(answer))
      .map(({ choices }) => choices[0]?.delta.tool_calls)
      .filter((calls) => calls !== undefined);
    expect(deltas).toEqual([
      [{ index: 0, id: "call_a", type: "function", function: { name: "get_weather", arguments: "" } }],
      [{ index: 0, function: { arguments: '{"city":' } }],
      [{ index: 0, function: { arguments: '"Köln"}' } }],
      [{ index: 1, id: "call_b", type: "function", function: { name: "get_time", arguments: "" } }],
      [{ index: 1, function: { arguments: "{}" } }],
    ]);
  });

  test("folds to the whole answer in the official client, whatever its shape", async () => {
    const random = randomSource(9);
    for (let round = 0; round < 30; round += 1) {
      const client = clientOf(testApp({ events: randomAnswer(random) }));
      const body = { model: "fake", messages };
      const whole = await client.chat.completions.create(body);
      const folded = await client.chat.completions.stream(body).finalChatCompletion();
      const { message, finish_reason: reason } = whole.choices[0]!;
      const streamed = folded.choices[0]!;
      expect(streamed.message.content ?? "").toBe(message.content ?? "");
      expect(streamed.finish_reason).toBe(reason);
      expect(
        (streamed.message.tool_calls ?? []).map((call) => [
          call.id,
          call.function.name,
          call.function.arguments,
        ]),
      ).toEqual(
        (message.tool_calls ?? []).map(
          (call) => call.type === "function" && [call.id, call.function.name, call.function.arguments],
        ),
      );
    }
  });

  test("that fails throws in the official client", async () => {
    const all = testApp();
    all.engine.script = () => failing(new ServiceError("engine_crashed", "It is gone."));
    const stream = await clientOf(all).chat.completions.create({ model: "fake", messages, stream: true });
    const read = async () => {
      for await (const chunk of stream) expect(chunk.choices).toHaveLength(1);
    };
    await expect(read()).rejects.toThrow("It is gone.");
  });

  test("that its client aborts is cancelled", async () => {
    const all = testApp();
    const stream = await clientOf(all).chat.completions.create({ model: "fake", messages, stream: true });
    await stream[Symbol.asyncIterator]().next();
    stream.controller.abort();
    await expect.poll(() => all.metrics.totals.activeRequests).toBe(0);
    expect(all.engine.inFlight).toBe(0);
  });
});

describe("several choices", () => {
  test("are generated side by side, each with a seed of its own", async () => {
    const all = testApp({ events: PLAIN_TEXT, slots: 4 });
    const answer = await clientOf(all).chat.completions.create({ model: "fake", messages, n: 3, seed: 7 });
    expect(answer.choices.map(({ index, message }) => [index, message.content])).toEqual([
      [0, "Hello world"],
      [1, "Hello world"],
      [2, "Hello world"],
    ]);
    expect(all.engine.requests.map(({ sampling }) => sampling.seed)).toEqual([7, 8, 9]);
    expect(answer.usage).toMatchObject({ prompt_tokens: 5, completion_tokens: 6, total_tokens: 11 });
  });

  test("come to their ends on one slot too", async () => {
    const all = testApp({ events: PLAIN_TEXT, slots: 1 });
    const answers = await Promise.all(
      [1, 2].map(() => clientOf(all).chat.completions.create({ model: "fake", messages, n: 4 })),
    );
    expect(answers.map(({ choices }) => choices.length)).toEqual([4, 4]);
    expect(all.engine.mostInFlight).toBe(1);
  });

  test("are streamed with their indices", async () => {
    const answer = await testApp({ events: PLAIN_TEXT }).post(PATH, { messages, n: 2, stream: true });
    const texts = ["", ""];
    for (const chunk of chunksOf(await sseEvents(answer))) {
      for (const { index, delta } of chunk.choices) texts[index] += delta.content ?? "";
    }
    expect(texts).toEqual(["Hello world", "Hello world"]);
  });

  test("end together when one fails", async () => {
    const all = testApp();
    all.engine.script = async function* () {
      const isSecond = all.engine.requests.length === 2;
      yield* PLAIN_TEXT.slice(0, 3);
      if (isSecond) throw new ServiceError("inference_failed", "No.");
      yield* PLAIN_TEXT.slice(3);
    };
    await expect(
      clientOf(all).chat.completions.create({ model: "fake", messages, n: 3 }),
    ).rejects.toMatchObject({
      status: 500,
      code: "inference_failed",
    });
    await expect.poll(() => all.metrics.totals.activeRequests).toBe(0);
    expect(all.engine.inFlight).toBe(0);
  });

  test("are no more than a model has slots", async () => {
    await expect(
      clientOf(testApp()).chat.completions.create({ model: "fake", messages, n: 5 }),
    ).rejects.toMatchObject({ status: 400, param: "n" });
  });
});

describe("a request", () => {
  test("is passed on field by field", async () => {
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
        tools: [{ name: "get_weather", parameters: { type: "object" } }],
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
      cachePrompt: true,
    });
  });

  test("without limits may fill the context; null is the same as absent", async () => {
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

  test.for<[string, object, object]>([
    ["effort none", { reasoning_effort: "none" }, { thinking: false }],
    ["a template variable", { chat_template_kwargs: { enable_thinking: false } }, { thinking: false }],
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
  ])("%s", async ([, fields, input]) => {
    const all = testApp();
    await all.post(PATH, { messages, ...fields });
    expect(all.lastRequest().input).toMatchObject(input);
  });

  test.for<[string, object, string]>([
    ["no messages", { messages: [] }, "messages"],
    ["top_logprobs without logprobs", { top_logprobs: 2 }, "top_logprobs"],
    ["a bias of no token", { logit_bias: { hello: 1 } }, "logit_bias.hello"],
    [
      "audio",
      { messages: [{ role: "user", content: [{ type: "input_audio", input_audio: {} }] }] },
      "messages.0.content.0",
    ],
    [
      "a file",
      { messages: [{ role: "user", content: [{ type: "file", file: {} }] }] },
      "messages.0.content.0",
    ],
    ["audio out", { modalities: ["text", "audio"] }, "modalities"],
    ["a tool of another kind", { tools: [{ type: "web_search" }] }, "tools.0.type"],
    ["a required call without tools", { tool_choice: "required" }, "tool_choice"],
    [
      "an address",
      {
        messages: [{ role: "user", content: [{ type: "image_url", image_url: { url: "http://a/b.png" } }] }],
      },
      "messages.0.content.0.image_url.url",
    ],
  ])("that cannot be: %s", async ([, fields, param]) => {
    const answer = await testApp().post(PATH, { messages, ...fields });
    expect(answer.status).toBe(400);
    expect(await answer.json()).toMatchObject({ error: { type: "invalid_request", param } });
  });
});

function request(all: TestApp, model = "fake") {
  return clientOf(all).chat.completions.create({ model, messages });
}

describe("errors", () => {
  test("have the classes of the official client", async () => {
    await expect(request(testApp(), "other")).rejects.toThrow(NotFoundError);
    await expect(request(testApp(), "other")).rejects.toMatchObject({ code: "model_not_found", param: null });
    const keyed = testApp({ config: { api_keys: ["secret"] } });
    await expect(request(keyed)).rejects.toThrow(AuthenticationError);
    const busy = testApp({ slots: 1, config: { models: { queue_size: 0 } } });
    const held = await busy.post(PATH, { messages, stream: true });
    await expect(request(busy)).rejects.toThrow(InternalServerError);
    await held.body?.cancel();
  });

  test("tell the client not to try again what cannot succeed", async () => {
    const all = testApp({ model: fakeModel() });
    const answer = await all.post(PATH, { messages, tools: [TOOL] });
    expect(answer.status).toBe(400);
    expect(answer.headers.get("x-should-retry")).toBe("false");
    expect(await answer.json()).toMatchObject({ error: { code: "unsupported_feature", param: "tools" } });
  });

  test("of unknown routes have the same shape", async () => {
    const answer = await testApp().app.request("/v1/nothing");
    expect(answer.status).toBe(404);
    expect(await answer.json()).toMatchObject({ error: { code: "route_not_found", param: null } });
  });
});
