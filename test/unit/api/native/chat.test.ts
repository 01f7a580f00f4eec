import { describe, expect, test } from "vitest";
import { chatLineSchema } from "../../../../src/api/wire/native.ts";
import { ServiceError } from "../../../../src/errors/service-error.ts";
import { randomNumbers } from "../../../support/random-numbers.ts";
import { lines, testApp } from "../../../support/test-app.ts";
import {
  failing,
  PLAIN_TEXT,
  PROGRESS,
  randomAnswer,
  THINKING_AND_TOOLS,
  WITH_LOGPROBS,
} from "../recorded-events.ts";
import { SUMMARY } from "./summary.ts";

const PNG = Buffer.from("89504e470d0a1a0a", "hex").toString("base64");

describe("POST /api/chat", () => {
  const messages = [{ role: "user", content: "hi" }];

  test("returns a complete message", async () => {
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

  test("reports the progress of the prompt if requested", async () => {
    const app = testApp({ events: PLAIN_TEXT });
    const options = { stream: true, return_progress: true };
    const [first] = await lines(await app.post("/api/chat", { messages, ...options }));
    const message = { role: "assistant", content: "" };
    expect(first).toEqual({ model: "fake", message, prompt_progress: PROGRESS, done: false });
    const [line] = await lines(await app.post("/api/generate", { prompt: "hi", ...options }));
    expect(line).toEqual({ model: "fake", response: "", prompt_progress: PROGRESS, done: false });
  });

  test("reports tokens with their alternatives if requested, streamed or not", async () => {
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

  test("streams one message per delta", async () => {
    const answer = await testApp({ events: PLAIN_TEXT }).post("/api/chat", { messages, stream: true });
    expect(await lines(answer)).toEqual([
      { model: "fake", message: { role: "assistant", content: "Hello" }, done: false },
      { model: "fake", message: { role: "assistant", content: " world" }, done: false },
      { model: "fake", message: { role: "assistant", content: "" }, done: true, ...SUMMARY },
    ]);
  });

  test("converts all roles, tool calls and images", async () => {
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

describe("a streamed chat", () => {
  test("adds up to the non-streaming answer for any sequence of events", async () => {
    const random = randomNumbers(5);
    for (let round = 0; round < 50; round += 1) {
      const all = testApp({ events: randomAnswer(random) });
      const body = { messages: [{ role: "user", content: "hi" }] };
      const complete = await (await all.post("/api/chat", body)).json();
      const folded = { content: "", thinking: "", tool_calls: [] as unknown[] };
      for (const line of await lines(await all.post("/api/chat", { ...body, stream: true }))) {
        const { message } = chatLineSchema.parse(line);
        folded.content += message.content;
        folded.thinking += message.thinking ?? "";
        folded.tool_calls.push(...(message.tool_calls ?? []));
      }
      expect(folded).toEqual({
        content: complete.message.content,
        thinking: complete.message.thinking ?? "",
        tool_calls: complete.message.tool_calls ?? [],
      });
    }
  });

  test("ends with one error line if generation fails", async () => {
    const all = testApp();
    all.engine.script = () => failing(new ServiceError("engine_crashed", "It is gone."));
    const answer = await all.post("/api/generate", { prompt: "hi", stream: true });
    expect(answer.status).toBe(200);
    expect(await lines(answer)).toEqual([
      { model: "fake", response: "Hello", done: false },
      { error: { message: "It is gone.", type: "model_error", code: "engine_crashed" } },
    ]);
  });

  test("is cancelled if the client disconnects", async () => {
    const all = testApp();
    const answer = await all.post("/api/generate", { prompt: "hi", stream: true });
    await answer.body?.cancel();
    await expect.poll(() => all.metrics.totals.activeRequests).toBe(0);
    expect(all.engine.inFlight).toBe(0);
  });
});
