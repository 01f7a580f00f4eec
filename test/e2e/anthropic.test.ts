import Anthropic, { BadRequestError, NotFoundError } from "@anthropic-ai/sdk";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { startDaemon, type TestDaemon } from "../support/start-daemon.ts";

const model = "daybreak-mini";
const messages = [{ role: "user" as const, content: "Hello" }];
const TOOL = {
  name: "get_weather",
  input_schema: {
    type: "object" as const,
    properties: { city: { enum: ["Rome", "Oslo"] } },
    required: ["city"],
    additionalProperties: false,
  },
};

/** Keeps any model busy: an answer of so many characters takes a second or more. */
const LONG_TEXT = { type: "string", minLength: 2000, maxLength: 2000 };

let daemon: TestDaemon;
let client: Anthropic;

beforeAll(async () => {
  daemon = await startDaemon();
  client = new Anthropic({ baseURL: daemon.url, apiKey: "any", maxRetries: 0 });
});

afterAll(async () => {
  await daemon.stop();
});

async function activeRequests(): Promise<number> {
  const status: unknown = await (await fetch(`${daemon.url}/status`)).json();
  return Number(Object(status)["active_requests"]);
}

function create(body: object) {
  return client.messages.create({ model, max_tokens: 4, messages, ...body });
}

describe("messages with the official client", () => {
  test("answer with text, a reason and the counts", async () => {
    const answers = await Promise.all([1, 2, 3].map(() => create({ max_tokens: 8, system: "Be brief." })));
    const message = answers.find(({ content }) => content.length > 0)!;
    expect(message).toMatchObject({
      type: "message",
      role: "assistant",
      model,
      content: [{ type: "text", text: expect.stringMatching(/./s) }],
    });
    expect(message.usage.output_tokens).toBeLessThanOrEqual(8);
    expect(message.stop_reason).toBe(message.usage.output_tokens === 8 ? "max_tokens" : "end_turn");
  });

  test("stream the blocks in order and know the length of the prompt from the start", async () => {
    const format = { type: "json_schema" as const, schema: LONG_TEXT };
    const stream = client.messages.stream({ model, max_tokens: 8, messages, output_config: { format } });
    const types: string[] = [];
    let inputTokens = 0;
    stream.on("streamEvent", (event) => {
      if (event.type !== types.at(-1)) types.push(event.type);
      if (event.type === "message_start") inputTokens = event.message.usage.input_tokens;
    });
    const message = await stream.finalMessage();
    expect(types).toEqual([
      "message_start",
      "content_block_start",
      "content_block_delta",
      "content_block_stop",
      "message_delta",
      "message_stop",
    ]);
    expect(inputTokens).toBeGreaterThan(1);
    expect(message.usage.input_tokens).toBe(inputTokens);
  });

  test("use a tool that must be used, and go on with its result", async () => {
    const body = { model, max_tokens: 200, tools: [TOOL], messages };
    const message = await client.messages.stream({ ...body, tool_choice: { type: "any" } }).finalMessage();
    expect(message.stop_reason).toBe("tool_use");
    const use = message.content.find((block) => block.type === "tool_use");
    expect(use).toMatchObject({
      name: "get_weather",
      input: { city: expect.stringMatching(/^(Rome|Oslo)$/) },
    });
    const answer = await client.messages.create({
      ...body,
      max_tokens: 4,
      messages: [
        ...messages,
        { role: "assistant", content: message.content },
        { role: "user", content: [{ type: "tool_result", tool_use_id: use!.id, content: "Sunny." }] },
      ],
    });
    expect(answer.usage.input_tokens).toBeGreaterThan(message.usage.input_tokens);
  });

  test("think when asked, in a signed block that they take back", async () => {
    const thinking = { type: "enabled" as const, budget_tokens: 1024 };
    // A weak model may end at once, but not every time.
    const answers = await Promise.all([1, 2, 3, 4].map(() => create({ max_tokens: 6, thinking })));
    const message = answers.find(({ content }) => content.length > 0)!;
    expect(message.content).toEqual([
      { type: "thinking", thinking: expect.stringMatching(/./s), signature: expect.stringMatching(/./) },
    ]);
    const again = await client.messages.create({
      model,
      max_tokens: 4,
      thinking,
      messages: [
        ...messages,
        { role: "assistant", content: [...message.content, { type: "text", text: "Hm." }] },
        { role: "user", content: "And?" },
      ],
    });
    expect(again.usage.input_tokens).toBeGreaterThan(message.usage.input_tokens);
  });

  test("stop at a stop sequence and name it", async () => {
    const schema = { type: "object", properties: { a: { const: "stop here now" } }, required: ["a"] };
    const message = await client.messages.create({
      model,
      max_tokens: 100,
      messages,
      stop_sequences: ["here"],
      output_config: { format: { type: "json_schema", schema } },
    });
    expect(message).toMatchObject({ stop_reason: "stop_sequence", stop_sequence: "here" });
    expect(JSON.stringify(message.content)).not.toContain("here");
  });

  test("end with their client", async () => {
    const stream = await client.messages.create({
      model,
      max_tokens: 1500,
      messages,
      output_config: { format: { type: "json_schema", schema: LONG_TEXT } },
      stream: true,
    });
    await stream[Symbol.asyncIterator]().next();
    stream.controller.abort();
    await expect.poll(activeRequests).toBe(0);
  });

  test("raise the client's error classes", async () => {
    await expect(create({ model: "no-such-model" })).rejects.toThrow(NotFoundError);
    await expect(create({ messages: [] })).rejects.toThrow(BadRequestError);
    await expect(
      create({ messages: [{ role: "user", content: "word ".repeat(4000) }] }),
    ).rejects.toMatchObject({
      status: 400,
      error: { error: { type: "invalid_request_error", code: "context_length_exceeded" } },
    });
  });
});
