import { describe, expect, test } from "vitest";
import { fakeModel } from "../../../support/fake-models.ts";
import { lines, testApp } from "../../../support/test-app.ts";
import { PLAIN_TEXT, THINKING_AND_TOOLS } from "../recorded-events.ts";
import { SUMMARY } from "./summary.ts";

const PNG = Buffer.from("89504e470d0a1a0a", "hex").toString("base64");
const TOOLS = [{ type: "function", function: { name: "get_weather", parameters: { type: "object" } } }];

describe("POST /api/generate", () => {
  test("returns the complete text and its statistics", async () => {
    const answer = await testApp({ events: PLAIN_TEXT }).post("/api/generate", { prompt: "hi" });
    const body = await answer.json();
    expect(body).toEqual({ model: "fake", response: "Hello world", done: true, ...SUMMARY });
    expect(Number.isInteger(body.total_duration_ms)).toBe(true);
  });

  test("streams one line per delta, and a last one with the statistics", async () => {
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

  test("uses the specified defaults", async () => {
    const all = testApp();
    await all.post("/api/generate", { prompt: "hi" });
    expect(all.lastRequest()).toMatchObject({
      maxTokens: 512,
      sampling: { temperature: 0.7, topP: 0.9, topK: 40 },
      stop: [],
      format: { type: "text" },
    });
  });

  test("passes every field to the engine", async () => {
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

  test("treats null like an absent field, and seed -1 like none", async () => {
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

  test("converts Ollama's think field", async () => {
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

  test("accepts tools like a chat", async () => {
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
