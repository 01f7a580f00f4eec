import { describe, expect, test } from "vitest";
import { z } from "zod";
import { ServiceError } from "../../../../src/errors/service-error.ts";
import type { GenerationEvent } from "../../../../src/engine/protocol/generation.ts";
import { fakeModel } from "../../../support/fake-models.ts";
import {
  failing,
  PLAIN_TEXT,
  randomAnswer,
  randomFailure,
  THINKING_AND_TOOLS,
  WITH_LOGPROBS,
} from "../recorded-events.ts";
import { lines, testApp } from "../../../support/test-app.ts";
import { randomNumbers } from "../../../support/random-numbers.ts";

const PATH = "/ollama/api/chat";
const messages = [{ role: "user", content: "hi" }];
const BASE = { model: "fake", messages };
const PNG = Buffer.from("89504e470d0a1a0a", "hex").toString("base64");
const TIME = expect.stringMatching(/^\d{4}-\d\d-\d\dT[\d:.]+Z$/);
const TOOL = { type: "function", function: { name: "get_weather", parameters: { type: "object" } } };

const CALL = { function: { name: "get_weather", arguments: {} } };

/** Events of a tool call with these arguments and this finish reason. */
function calling(text: string, reason: "tool_calls" | "length"): GenerationEvent[] {
  const ends = PLAIN_TEXT.filter((event) => event.type === "done");
  return [
    { type: "start" },
    { type: "tool-call-start", index: 0, id: "call_a", name: "get_weather" },
    { type: "tool-call-delta", index: 0, arguments: text },
    ...ends.map((end) => Object.assign({}, end, { reason })),
  ];
}

describe("a non-streaming answer", () => {
  test("has thinking, text, tool calls with object arguments, and durations in nanoseconds", async () => {
    const answer = await testApp({ events: THINKING_AND_TOOLS }).post(PATH, { ...BASE, stream: false });
    expect(answer.headers.get("content-type")).toBe("application/json");
    expect(await answer.json()).toEqual({
      model: "fake",
      created_at: TIME,
      message: {
        role: "assistant",
        content: "Let me look — “ok”.",
        thinking: "The user wants the weather.",
        tool_calls: [
          { id: "call_a", function: { index: 0, name: "get_weather", arguments: { city: "Köln" } } },
          { id: "call_b", function: { index: 1, name: "get_time", arguments: {} } },
        ],
      },
      done: true,
      done_reason: "stop",
      total_duration: expect.any(Number),
      load_duration: expect.any(Number),
      prompt_eval_count: 24,
      prompt_eval_cached_count: 8,
      prompt_eval_duration: 100_000_000,
      eval_count: 31,
      eval_duration: 310_000_000,
    });
  });

  test("has the model name of the request", async () => {
    const answer = await testApp({ events: PLAIN_TEXT }).post(PATH, {
      ...BASE,
      model: "library/fake",
      stream: false,
    });
    expect(await answer.json()).toMatchObject({ model: "library/fake" });
  });

  test("has log probabilities if requested", async () => {
    const all = testApp({ events: WITH_LOGPROBS });
    const answer = await all.post(PATH, { ...BASE, stream: false, logprobs: true, top_logprobs: 1 });
    expect(all.lastRequest().logprobs).toBe(1);
    expect(await answer.json()).toMatchObject({
      logprobs: [
        { token: "Hello", logprob: -0.5, top_logprobs: [{ token: "x", logprob: -1, bytes: [120] }] },
        { token: " world" },
      ],
    });
  });

  test("omits a tool call that the token limit cut off", async () => {
    const answer = await testApp({ events: calling('{"city": "K', "length") }).post(PATH, {
      ...BASE,
      stream: false,
    });
    const body: unknown = await answer.json();
    expect(body).toMatchObject({ done_reason: "length", message: { content: "" } });
    expect(body).not.toHaveProperty("message.tool_calls");
  });

  test("fails if the arguments of a tool call are not an object", async () => {
    const answer = await testApp({ events: calling("[1]", "tool_calls") }).post(PATH, {
      ...BASE,
      stream: false,
    });
    expect(answer.status).toBe(500);
    expect(await answer.json()).toEqual({ error: expect.stringMatching(/get_weather/) });
  });
});

describe("a streamed answer", () => {
  test("is the default: one line per delta, one with the tool calls, and one with the statistics", async () => {
    const answer = await testApp({ events: THINKING_AND_TOOLS }).post(PATH, BASE);
    expect(answer.headers.get("content-type")).toBe("application/x-ndjson");
    const all = await lines(answer);
    expect(all.slice(0, -1).every((line) => Object(line)["done"] === false)).toBe(true);
    expect(all.map((line) => Object(line)["message"])).toEqual([
      { role: "assistant", content: "", thinking: "The user wants" },
      { role: "assistant", content: "", thinking: " the weather." },
      { role: "assistant", content: "Let me " },
      { role: "assistant", content: "look — “ok”." },
      { role: "assistant", content: "", tool_calls: [expect.anything(), expect.anything()] },
      { role: "assistant", content: "" },
    ]);
    expect(all.at(-1)).toMatchObject({ model: "fake", created_at: TIME, done: true, eval_count: 31 });
  });

  test("adds up to the non-streaming answer for any sequence of events", async () => {
    const random = randomNumbers(5);
    for (let round = 0; round < 40; round++) {
      const events = randomAnswer(random);
      const complete: unknown = await (
        await testApp({ events }).post(PATH, { ...BASE, stream: false })
      ).json();
      const streamed = await lines(await testApp({ events }).post(PATH, BASE));
      expect(fold(streamed)).toEqual(Object(complete)["message"]);
    }
  });

  test("ends with the same error as without streaming if generation fails at any point", async () => {
    const random = randomNumbers(18);
    const error = new ServiceError("engine_crashed", "It is gone.");
    for (let round = 0; round < 40; round += 1) {
      const all = testApp();
      all.engine.script = () => randomFailure(random, error);
      const complete = await all.post(PATH, { ...BASE, stream: false });
      expect([complete.status, await complete.json()]).toEqual([500, { error: "It is gone." }]);
      const streamed = await lines(await all.post(PATH, BASE));
      expect(streamed.at(-1)).toEqual({ error: "It is gone." });
      expect(streamed.some((line) => Object(line)["done"] === true)).toBe(false);
    }
  });

  test("ends with an error line if generation fails", async () => {
    const all = testApp();
    all.engine.script = () => failing(new ServiceError("inference_failed", "The engine is confused."));
    const answer = await all.post(PATH, BASE);
    expect(answer.status).toBe(200);
    expect((await lines(answer)).at(-1)).toEqual({ error: "The engine is confused." });
  });
});

const lineSchema = z.object({
  message: z.object({
    content: z.string(),
    thinking: z.string().default(""),
    tool_calls: z.array(z.unknown()).default([]),
  }),
});

/** Joins the lines of a stream to one message. */
function fold(all: readonly unknown[]): object {
  const deltas = all.map((line) => lineSchema.parse(line).message);
  const thinking = deltas.map((message) => message.thinking).join("");
  const calls = deltas.flatMap((message) => message.tool_calls);
  return {
    role: "assistant",
    content: deltas.map(({ content }) => content).join(""),
    ...(thinking !== "" && { thinking }),
    ...(calls.length > 0 && { tool_calls: calls }),
  };
}

describe("a chat request", () => {
  test("passes messages, tools and images to the engine", async () => {
    const all = testApp({ events: PLAIN_TEXT });
    await all.post(PATH, {
      model: "fake",
      messages: [
        { role: "system", content: "Be short." },
        { role: "user", content: "Look.", images: [PNG] },
        {
          role: "assistant",
          content: "",
          thinking: "Hm.",
          tool_calls: [
            { function: { name: "get_weather", arguments: { city: "Rome" } } },
            { function: { name: "get_time", arguments: {} } },
          ],
        },
        { role: "tool", tool_name: "get_time", content: "12:00" },
        { role: "tool", content: "Sunny." },
      ],
      tools: [TOOL],
      think: "high",
    });
    expect(all.lastRequest().input).toMatchObject({
      kind: "chat",
      messages: [
        { role: "system", content: [{ type: "text", text: "Be short." }] },
        { role: "user", content: [{ type: "image" }, { type: "text", text: "Look." }] },
        {
          role: "assistant",
          reasoning: "Hm.",
          toolCalls: [
            { id: "call_2_0", name: "get_weather", arguments: '{"city":"Rome"}' },
            { id: "call_2_1", name: "get_time", arguments: "{}" },
          ],
        },
        { role: "tool", toolCallId: "call_2_1", name: "get_time" },
        { role: "tool", toolCallId: "call_2_0", name: "get_weather" },
      ],
      tools: [{ name: "get_weather", parameters: { type: "object" } }],
      toolChoice: "auto",
      thinking: true,
      templateVariables: { reasoning_effort: "high" },
    });
  });

  test("keeps the call ID of a tool result", async () => {
    const all = testApp({ events: PLAIN_TEXT });
    await all.post(PATH, {
      model: "fake",
      messages: [
        ...messages,
        {
          role: "assistant",
          tool_calls: [
            { ...CALL, id: "a" },
            { ...CALL, id: "b" },
          ],
        },
        { role: "tool", tool_call_id: "b", content: "1" },
        { role: "tool", content: "2" },
        { role: "tool", content: "one too many" },
      ],
    });
    const { input } = all.lastRequest();
    const results = input.kind === "chat" ? input.messages.slice(2) : [];
    expect(results.map(({ toolCallId }) => toolCallId)).toEqual(["b", "a", undefined]);
  });

  test.for([
    ["json", /"\{"/],
    ["", /^undefined$/],
    [{ const: "here" }, /here/],
  ] as const)("format %j requests an answer with grammar %s", async ([format, expected]) => {
    const all = testApp({ events: PLAIN_TEXT });
    await all.post(PATH, { ...BASE, format });
    const requested = all.lastRequest().format;
    expect(String(requested.type === "grammar" ? requested.grammar : undefined)).toMatch(expected);
  });

  test.for([
    [{ model: "fake", messages: [{ role: "king", content: "hi" }] }, 400, /messages\.0\.role/],
    [{ messages }, 400, /model.*is required/],
    [{ ...BASE, options: { temperature: "hot" } }, 400, /options\.temperature/],
    [{ ...BASE, keep_alive: "soon" }, 400, /keep_alive/],
    [{ ...BASE, top_logprobs: 21 }, 400, /top_logprobs/],
    [{ model: "nobody", messages }, 404, /^model 'nobody' not found/],
    [{ model: "some/one:else", messages }, 404, /^model 'some\/one:else' not found/],
  ] as const)("rejects %j with status %i", async ([body, status, message]) => {
    const answer = await testApp({ events: PLAIN_TEXT }).post(PATH, body);
    expect(answer.status).toBe(status);
    expect(await answer.json()).toEqual({ error: expect.stringMatching(message) });
  });

  test.for([
    [{ tools: [TOOL] }, /^model does not support tools: /],
    [{ think: true }, /^model does not support thinking: /],
    [{ messages: [{ role: "user", images: [PNG] }] }, /^model does not support vision: /],
  ] as const)("names the capability that the model lacks: %j", async ([more, message]) => {
    const answer = await testApp({ model: fakeModel(), events: PLAIN_TEXT }).post(PATH, { ...BASE, ...more });
    expect(answer.status).toBe(400);
    expect(await answer.json()).toEqual({ error: expect.stringMatching(message) });
  });
});

test.for([
  ["GET", "/ollama/api/none", 404],
  ["GET", "/ollama/api/chat", 405],
] as const)("%s %s returns errors in this API's format", async ([method, path, status]) => {
  const answer = await testApp().app.request(path, { method });
  expect(answer.status).toBe(status);
  expect(await answer.json()).toEqual({ error: expect.any(String) });
});
