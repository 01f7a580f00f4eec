import { describe, expect, test } from "vitest";
import { chatLineSchema } from "../../../../src/dialects/native/native-chat.ts";
import { ServiceError } from "../../../../src/errors/service-error.ts";
import {
  failing,
  PLAIN_TEXT,
  PROGRESS,
  randomAnswer,
  THINKING_AND_TOOLS,
  WITH_LOGPROBS,
} from "../recorded-events.ts";
import { fakeModel } from "../../../support/fake-models.ts";
import { lines, testApp } from "../../../support/test-app.ts";
import { endless } from "../../inference/inference-setup.ts";
import { randomNumbers } from "../../../support/random-numbers.ts";

const PNG = Buffer.from("89504e470d0a1a0a", "hex").toString("base64");
const TOOLS = [{ type: "function", function: { name: "get_weather", parameters: { type: "object" } } }];
const SUMMARY = {
  done_reason: "stop",
  total_duration_ms: expect.any(Number),
  prompt_tokens: 5,
  cached_tokens: 0,
  completion_tokens: 2,
  tokens_per_second: 100,
};

describe("POST /api/generate", () => {
  test("answers with the whole text and its summary", async () => {
    const answer = await testApp({ events: PLAIN_TEXT }).post("/api/generate", { prompt: "hi" });
    const body = await answer.json();
    expect(body).toEqual({ model: "fake", response: "Hello world", done: true, ...SUMMARY });
    expect(Number.isInteger(body.total_duration_ms)).toBe(true);
  });

  test("streams one line for each piece and an empty one with the summary", async () => {
    const answer = await testApp({ events: PLAIN_TEXT }).post("/api/generate", {
      prompt: "hi",
      stream: true,
    });
    expect(answer.headers.get("content-type")).toBe("application/x-ndjson");
    expect(await lines(answer)).toEqual([
      { model: "fake", response: "Hello", done: false },
      { model: "fake", response: " world", done: false },
      { model: "fake", response: "", done: true, ...SUMMARY },
    ]);
  });

  test("uses the defaults of the specification", async () => {
    const all = testApp();
    await all.post("/api/generate", { prompt: "hi" });
    expect(all.lastRequest()).toMatchObject({
      maxTokens: 512,
      sampling: { temperature: 0.7, topP: 0.9, topK: 40 },
      stop: [],
      format: { type: "text" },
    });
  });

  test("passes on every field", async () => {
    const all = testApp();
    await all.post("/api/generate", {
      model: "fake",
      prompt: "hi",
      system: "Be kind.",
      max_tokens: 3,
      temperature: 0,
      top_p: 0.5,
      top_k: 1,
      min_p: 0.1,
      repeat_penalty: 1.1,
      presence_penalty: 0.2,
      frequency_penalty: 0.3,
      seed: 7,
      stop: ["\n"],
      format: { type: "object" },
      images: [PNG],
      think: true,
      unknown_field: "ignored",
    });
    expect(all.lastRequest()).toEqual({
      input: {
        kind: "chat",
        messages: [
          { role: "system", content: [{ type: "text", text: "Be kind." }] },
          {
            role: "user",
            content: [
              { type: "image", data: expect.any(Uint8Array) },
              { type: "text", text: "hi" },
            ],
          },
        ],
        tools: [],
        toolChoice: "none",
        parallelToolCalls: false,
        thinking: true,
      },
      maxTokens: 3,
      stop: ["\n"],
      sampling: {
        temperature: 0,
        topP: 0.5,
        topK: 1,
        minP: 0.1,
        repeatPenalty: 1.1,
        presencePenalty: 0.2,
        frequencyPenalty: 0.3,
        seed: 7,
      },
      format: { type: "json_schema", schema: { type: "object" } },
      cachePrompt: true,
    });
  });

  test("null means the same as leaving a field out, and a seed of -1 the same as none", async () => {
    const all = testApp();
    await all.post("/api/generate", {
      prompt: "hi",
      temperature: null,
      max_tokens: null,
      format: "",
      seed: -1,
    });
    expect(all.lastRequest()).toMatchObject({
      maxTokens: 512,
      format: { type: "text" },
      sampling: { temperature: 0.7, seed: 0xffff_ffff },
    });
  });

  test("thinks as much as is said, as Ollama takes it", async () => {
    const all = testApp({
      model: fakeModel({ capabilities: { ...fakeModel().capabilities, thinking: true }, isDefault: true }),
    });
    const messages = [{ role: "user", content: "hi" }];
    for (const [path, body] of [
      ["/api/generate", { prompt: "hi" }],
      ["/api/chat", { messages }],
    ] as const) {
      await all.post(path, { ...body, think: "low" });
      expect(all.lastRequest()).toMatchObject({
        input: { thinking: true, templateVariables: { reasoning_effort: "low" } },
        reasoning: { budget: 409 },
      });
      expect((await all.post(path, { ...body, think: "a lot" })).status).toBe(400);
    }
  });

  test("offers tools as a chat does", async () => {
    const all = testApp({ events: THINKING_AND_TOOLS });
    const answer = await all.post("/api/generate", {
      prompt: "hi",
      tools: TOOLS,
      tool_choice: "required",
      images: [PNG],
    });
    expect(all.lastRequest().input).toMatchObject({
      kind: "chat",
      tools: [{ name: "get_weather" }],
      messages: [{ role: "user", content: [{ type: "image" }, { type: "text" }] }],
    });
    expect(await answer.json()).toMatchObject({
      response: "Let me look — “ok”.",
      thinking: "The user wants the weather.",
      tool_calls: [{ function: { name: "get_weather", arguments: '{"city":"Köln"}' } }, { id: "call_b" }],
      done_reason: "tool_calls",
    });
  });
});

describe("POST /api/chat", () => {
  const messages = [{ role: "user", content: "hi" }];

  test("answers with a whole message", async () => {
    const answer = await testApp({ events: THINKING_AND_TOOLS }).post("/api/chat", { messages });
    expect(await answer.json()).toEqual({
      model: "fake",
      message: {
        role: "assistant",
        content: "Let me look — “ok”.",
        thinking: "The user wants the weather.",
        tool_calls: [
          { id: "call_a", type: "function", function: { name: "get_weather", arguments: '{"city":"Köln"}' } },
          { id: "call_b", type: "function", function: { name: "get_time", arguments: "{}" } },
        ],
      },
      done: true,
      done_reason: "tool_calls",
      total_duration_ms: expect.any(Number),
      prompt_tokens: 24,
      cached_tokens: 8,
      completion_tokens: 31,
      tokens_per_second: 100,
    });
  });

  test("tells how far the prompt is, when asked", async () => {
    const app = testApp({ events: PLAIN_TEXT });
    const wishes = { stream: true, return_progress: true };
    const [first] = await lines(await app.post("/api/chat", { messages, ...wishes }));
    const message = { role: "assistant", content: "" };
    expect(first).toEqual({ model: "fake", message, prompt_progress: PROGRESS, done: false });
    const [line] = await lines(await app.post("/api/generate", { prompt: "hi", ...wishes }));
    expect(line).toEqual({ model: "fake", response: "", prompt_progress: PROGRESS, done: false });
  });

  test("reports tokens with their alternatives, when asked, streamed or not", async () => {
    const app = testApp({ events: WITH_LOGPROBS });
    const body = { messages, logprobs: 1 };
    const top = [{ id: 120, token: "x", logprob: -1 }];
    const tokens = [
      { id: 5, token: "Hello", logprob: -0.5, top },
      { id: 6, token: " world", logprob: -0.5, top },
    ];
    expect(await (await app.post("/api/chat", body)).json()).toMatchObject({ logprobs: tokens });
    expect(app.lastRequest()).toMatchObject({ logprobs: 1 });
    const streamed = await lines(await app.post("/api/chat", { ...body, stream: true }));
    expect(streamed.flatMap((line) => chatLineSchema.parse(line).logprobs ?? [])).toEqual(tokens);
  });

  test("streams messages with a piece each", async () => {
    const answer = await testApp({ events: PLAIN_TEXT }).post("/api/chat", { messages, stream: true });
    expect(await lines(answer)).toEqual([
      { model: "fake", message: { role: "assistant", content: "Hello" }, done: false },
      { model: "fake", message: { role: "assistant", content: " world" }, done: false },
      { model: "fake", message: { role: "assistant", content: "" }, done: true, ...SUMMARY },
    ]);
  });

  test("knows all roles, tool turns and images", async () => {
    const all = testApp();
    await all.post("/api/chat", {
      messages: [
        { role: "developer", content: "Be kind." },
        { role: "user", content: "What is it?", images: [`data:image/png;base64,${PNG}`] },
        {
          role: "assistant",
          thinking: "hm",
          tool_calls: [{ id: "c1", function: { name: "look", arguments: { at: 1 } } }],
        },
        { role: "tool", content: "a cat", tool_call_id: "c1", name: "look" },
        { role: "user", content: "Sure?" },
      ],
      images: [PNG],
    });
    const image = { type: "image", data: expect.any(Uint8Array) };
    expect(all.lastRequest().input).toMatchObject({
      messages: [
        { role: "system", content: [{ type: "text", text: "Be kind." }] },
        { role: "user", content: [image, { type: "text", text: "What is it?" }] },
        {
          role: "assistant",
          content: [],
          reasoning: "hm",
          toolCalls: [{ id: "c1", name: "look", arguments: '{"at":1}' }],
        },
        { role: "tool", content: [{ type: "text", text: "a cat" }], toolCallId: "c1", name: "look" },
        { role: "user", content: [image, { type: "text", text: "Sure?" }] },
      ],
    });
  });
});

describe("a stream", () => {
  test("folds to the whole answer, whatever its shape", async () => {
    const random = randomNumbers(5);
    for (let round = 0; round < 50; round += 1) {
      const all = testApp({ events: randomAnswer(random) });
      const body = { messages: [{ role: "user", content: "hi" }] };
      const whole = await (await all.post("/api/chat", body)).json();
      const folded = { content: "", thinking: "", tool_calls: [] as unknown[] };
      for (const line of await lines(await all.post("/api/chat", { ...body, stream: true }))) {
        const { message } = chatLineSchema.parse(line);
        folded.content += message.content;
        folded.thinking += message.thinking ?? "";
        folded.tool_calls.push(...(message.tool_calls ?? []));
      }
      expect(folded).toEqual({
        content: whole.message.content,
        thinking: whole.message.thinking ?? "",
        tool_calls: whole.message.tool_calls ?? [],
      });
    }
  });

  test("that fails ends with one error line", async () => {
    const all = testApp();
    all.engine.script = () => failing(new ServiceError("engine_crashed", "It is gone."));
    const answer = await all.post("/api/generate", { prompt: "hi", stream: true });
    expect(answer.status).toBe(200);
    expect(await lines(answer)).toEqual([
      { model: "fake", response: "Hello", done: false },
      { error: { message: "It is gone.", type: "model_error", code: "engine_crashed" } },
    ]);
  });

  test("whose reader goes away is cancelled", async () => {
    const all = testApp();
    const answer = await all.post("/api/generate", { prompt: "hi", stream: true });
    await answer.body?.cancel();
    await expect.poll(() => all.metrics.totals.activeRequests).toBe(0);
    expect(all.engine.inFlight).toBe(0);
  });
});

describe("POST /api/embeddings", () => {
  test("gives one vector for each text", async () => {
    const all = testApp();
    expect(await (await all.post("/api/embeddings", { input: "abc" })).json()).toEqual({
      model: "fake",
      embeddings: [[3, 0]],
      dimensions: 2,
      total_tokens: 3,
    });
    expect(await (await all.post("/api/embeddings", { input: ["a", "bb"] })).json()).toMatchObject({
      embeddings: [
        [1, 0],
        [2, 0],
      ],
      total_tokens: 3,
    });
    expect(all.metrics.finished).toEqual(["embeddings", "embeddings"]);
  });
});

describe("errors", () => {
  test.for<[string, string, unknown, string, RegExp]>([
    ["no prompt", "/api/generate", {}, "invalid_parameter", /^prompt:/],
    ["a prompt that is not text", "/api/generate", { prompt: 1 }, "invalid_parameter", /^prompt:/],
    [
      "a fraction of a token",
      "/api/generate",
      { prompt: "", max_tokens: 1.5 },
      "invalid_parameter",
      /^max_tokens:/,
    ],
    ["no token at all", "/api/generate", { prompt: "", max_tokens: 0 }, "invalid_parameter", /^max_tokens:/],
    [
      "a temperature below 0",
      "/api/generate",
      { prompt: "", temperature: -1 },
      "invalid_parameter",
      /^temperature:/,
    ],
    [
      "no repeat_penalty at all",
      "/api/generate",
      { prompt: "", repeat_penalty: 0 },
      "invalid_parameter",
      /^repeat_penalty:/,
    ],
    ["top_p above 1", "/api/generate", { prompt: "", top_p: 1.1 }, "invalid_parameter", /^top_p:/],
    ["a stop that is not a list", "/api/generate", { prompt: "", stop: "x" }, "invalid_parameter", /^stop:/],
    ["an empty stop", "/api/generate", { prompt: "", stop: ["a", ""] }, "invalid_parameter", /^stop\.1:/],
    ["an unknown format", "/api/generate", { prompt: "", format: "xml" }, "invalid_parameter", /^format:/],
    ["no messages", "/api/chat", {}, "invalid_parameter", /^messages:/],
    ["an empty conversation", "/api/chat", { messages: [] }, "invalid_parameter", /^messages:/],
    [
      "an unknown role",
      "/api/chat",
      { messages: [{ role: "robot", content: "" }] },
      "invalid_parameter",
      /^messages\.0\.role:/,
    ],
    [
      "a message without content",
      "/api/chat",
      { messages: [{ role: "user", content: "a" }, { role: "user" }] },
      "invalid_parameter",
      /^messages\.1\.content:/,
    ],
    [
      "an invalid image",
      "/api/chat",
      { messages: [{ role: "user", content: "", images: ["aGVsbG8="] }] },
      "invalid_parameter",
      /^messages\.0\.images\.0:/,
    ],
    [
      "an image by its URL",
      "/api/generate",
      { prompt: "", images: ["https://example.org/a.png"] },
      "invalid_parameter",
      /^images\.0:.*does not fetch URLs/,
    ],
    ["no input", "/api/embeddings", {}, "invalid_parameter", /^input:/],
    ["an empty batch", "/api/embeddings", { input: [] }, "invalid_parameter", /^input:/],
    ["an empty text", "/api/embeddings", { input: ["a", ""] }, "invalid_parameter", /^input\.1: must not/],
    ["a batch of other things", "/api/embeddings", { input: ["a", 1] }, "invalid_parameter", /^input\.1:/],
    ["broken JSON", "/api/chat", "{", "invalid_json", /JSON/],
  ])("refuses %s", async ([, path, body, code, message]) => {
    const answer = await testApp().post(path, body);
    expect(answer.status).toBe(400);
    expect(await answer.json()).toEqual({
      error: { type: "invalid_request", code, message: expect.stringMatching(message) },
    });
  });

  test("an unknown model is 404", async () => {
    const answer = await testApp().post("/api/generate", { model: "other", prompt: "hi" });
    expect(answer.status).toBe(404);
    expect(await answer.json()).toMatchObject({ error: { type: "not_found", code: "model_not_found" } });
  });

  test("what fails before the first piece has its status, stream or not", async () => {
    const all = testApp();
    all.engine.script = async function* () {
      if (all.engine.requests.length > 0) throw new ServiceError("context_length_exceeded", "9 of 8 tokens.");
      yield { type: "start" };
    };
    const answer = await all.post("/api/chat", { messages: [{ role: "user", content: "hi" }], stream: true });
    expect(answer.status).toBe(400);
    expect(await answer.json()).toMatchObject({ error: { code: "context_length_exceeded" } });
  });

  test("a full queue is 503 and says when to come back", async () => {
    const all = testApp({ slots: 1, config: { models: { queue_size: 0 } } });
    all.engine.script = endless;
    const first = await all.post("/api/generate", { prompt: "hi", stream: true });
    const second = await all.post("/api/generate", { prompt: "hi" });
    expect(second.status).toBe(503);
    expect(Number(second.headers.get("retry-after"))).toBeGreaterThan(0);
    expect(await second.json()).toMatchObject({ error: { type: "overloaded", code: "overloaded" } });
    await first.body?.cancel();
  });
});
