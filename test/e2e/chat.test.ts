import { beforeAll, describe, expect, test } from "vitest";
import { chatAnswerSchema, chatLineSchema } from "../../src/api/wire/native.ts";
import {
  AMPLE_TOKENS,
  GREEDY,
  QUESTION_FOR_WEATHER,
  QUESTION_TO_THINK_ABOUT,
} from "../support/certain-requests.ts";
import { postJson } from "../support/post-json.ts";
import { sharedDaemon } from "../support/shared-daemon.ts";
import type { TestDaemon } from "../support/start-daemon.ts";

let daemon: TestDaemon;

beforeAll(async () => {
  daemon = await sharedDaemon();
});

const messages = [
  { role: "system", content: "Be brief." },
  { role: "user", content: "Hello" },
];
const weatherMessages = [{ role: "user", content: QUESTION_FOR_WEATHER }];
const TOOLS = [
  {
    type: "function",
    function: {
      name: "get_weather",
      description: "The weather in a city.",
      parameters: {
        type: "object",
        properties: { city: { enum: ["Rome", "Oslo"] } },
        required: ["city"],
        additionalProperties: false,
      },
    },
  },
  { type: "function", function: { name: "get_time" } },
];

function post(body: object): Promise<Response> {
  return postJson(`${daemon.url}/api/chat`, body);
}

async function chat(body: object) {
  const response = await post(body);
  expect(response.status).toBe(200);
  return chatAnswerSchema.parse(await response.json());
}

async function stream(body: object) {
  const response = await post({ ...body, stream: true });
  expect(response.headers.get("content-type")).toBe("application/x-ndjson");
  const text = await response.text();
  return text
    .trimEnd()
    .split("\n")
    .map((line) => chatLineSchema.parse(JSON.parse(line)));
}

describe("POST /api/chat", () => {
  test("answers with a message and its summary", async () => {
    const answer = await chat({ messages, max_tokens: 8, ...GREEDY });
    expect(answer).toMatchObject({
      model: "daybreak-mini",
      message: { role: "assistant", content: expect.stringMatching(/./s) },
      done: true,
    });
    expect(answer.completion_tokens).toBeLessThanOrEqual(8);
    expect(answer.prompt_tokens).toBeGreaterThan(8);
  });

  test("streams the same message", async () => {
    const body = { messages, max_tokens: 12, seed: 2 };
    const lines = await stream(body);
    const whole = await chat(body);
    expect(lines.map(({ message }) => message.content).join("")).toBe(whole.message.content);
    expect(lines.at(-1)).toMatchObject({
      message: { role: "assistant", content: "" },
      done: true,
      done_reason: whole.done_reason,
      completion_tokens: whole.completion_tokens,
    });
  });

  test("sends reasoning in separate lines when requested", async () => {
    const question = [{ role: "user", content: QUESTION_TO_THINK_ABOUT }];
    const lines = await stream({ messages: question, max_tokens: AMPLE_TOKENS, think: true, ...GREEDY });
    const pieces = lines.slice(0, -1).map(({ message }) => message);
    expect(pieces[0]?.thinking).toMatch(/./s);
    expect(pieces.every(({ content, thinking }) => (content === "") === (thinking !== undefined))).toBe(true);
    // No reasoning follows once the answer has begun.
    const answerAt = pieces.findIndex(({ content }) => content !== "");
    expect(answerAt).toBeGreaterThan(0);
    expect(pieces.slice(answerAt).every(({ thinking }) => thinking === undefined)).toBe(true);
  });

  test("calls a required tool with valid arguments", async () => {
    const answer = await chat({
      messages: weatherMessages,
      max_tokens: AMPLE_TOKENS,
      ...GREEDY,
      tools: TOOLS,
      tool_choice: "required",
    });
    expect(answer.done_reason).toBe("tool_calls");
    expect(answer.message.content).toBe("");
    const [call] = answer.message.tool_calls ?? [];
    expect(call?.function.name).toMatch(/^get_(weather|time)$/);
    expect(JSON.parse(call?.function.arguments ?? "")).toBeTypeOf("object");
  });

  test("calls a named tool, also streamed, and continues with its result", async () => {
    const tool_choice = { type: "function", function: { name: "get_weather" } };
    const lines = await stream({
      messages: weatherMessages,
      max_tokens: AMPLE_TOKENS,
      ...GREEDY,
      tools: TOOLS,
      tool_choice,
    });
    const [call] = lines.flatMap(({ message }) => message.tool_calls ?? []);
    expect(lines.at(-1)).toMatchObject({ done: true, done_reason: "tool_calls" });
    expect(call).toMatchObject({ id: expect.any(String), function: { name: "get_weather" } });
    expect(JSON.parse(call!.function.arguments)).toEqual({ city: expect.stringMatching(/^(Rome|Oslo)$/) });

    const answer = await chat({
      messages: [
        ...weatherMessages,
        { role: "assistant", tool_calls: [call] },
        { role: "tool", content: "Sunny.", tool_call_id: call!.id },
      ],
      tools: TOOLS,
      max_tokens: 8,
    });
    expect(answer.prompt_tokens).toBeGreaterThan(
      (await chat({ messages: weatherMessages, tools: TOOLS, max_tokens: 1 })).prompt_tokens,
    );
  });

  test("treats the developer role as the system role", async () => {
    const asSystem = await chat({ messages, max_tokens: 1 });
    const asDeveloper = await chat({
      messages: [{ role: "developer", content: "Be brief." }, messages[1]],
      max_tokens: 1,
    });
    expect(asDeveloper.prompt_tokens).toBe(asSystem.prompt_tokens);
  });

  test("continues an assistant message", async () => {
    const answer = await chat({
      messages: [...messages, { role: "assistant", content: "Once upon" }],
      max_tokens: 4,
    });
    expect(answer.done).toBe(true);
  });

  test.for<[string, object, number, string]>([
    ["no messages", {}, 400, "invalid_parameter"],
    ["an unknown role", { messages: [{ role: "robot", content: "" }] }, 400, "invalid_parameter"],
    ["an unknown model", { messages, model: "no-such-model" }, 404, "model_not_found"],
    ["a call of no tool", { messages, tool_choice: "required" }, 400, "invalid_parameter"],
  ])("refuses %s", async ([, body, status, code]) => {
    const response = await post(body);
    expect(response.status).toBe(status);
    expect(await response.json()).toMatchObject({ error: { code } });
  });
});
