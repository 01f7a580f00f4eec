import Anthropic, { BadRequestError, NotFoundError } from "@anthropic-ai/sdk";
import { beforeAll, describe, expect, test } from "vitest";
import { activeRequests } from "../support/active-requests.ts";
import {
  AMPLE_TOKENS,
  ENDLESS_OBJECT,
  GREEDY,
  QUESTION_FOR_WEATHER,
  QUESTION_TO_THINK_ABOUT,
} from "../support/certain-requests.ts";
import { sharedDaemon } from "../support/shared-daemon.ts";
import type { TestDaemon } from "../support/start-daemon.ts";

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

const ENDLESS = { format: { type: "json_schema" as const, schema: ENDLESS_OBJECT } };

let daemon: TestDaemon;
let client: Anthropic;

beforeAll(async () => {
  daemon = await sharedDaemon();
  client = new Anthropic({ baseURL: daemon.url, apiKey: "any", maxRetries: 0 });
});

function create(body: object) {
  return client.messages.create({ model, max_tokens: 4, messages, ...GREEDY, ...body });
}

/** Prompt tokens, computed or cached. */
function promptOf({ usage }: Anthropic.Message): number {
  return usage.input_tokens + (usage.cache_read_input_tokens ?? 0);
}

describe("messages with the official client", () => {
  test("return text, a stop reason and usage", async () => {
    const message = await create({ max_tokens: AMPLE_TOKENS, system: "Be brief." });
    expect(message).toMatchObject({
      type: "message",
      role: "assistant",
      model,
      content: [{ type: "text", text: expect.stringMatching(/./s) }],
    });
    expect(message.stop_reason).toBe("end_turn");
    expect(message.usage.output_tokens).toBeLessThan(AMPLE_TOKENS);
  });

  test("call a built-in tool of the API that the client runs", async () => {
    const tools = [{ type: "bash_20250124" as const, name: "bash" as const }];
    const message = await create({ max_tokens: 64, tools, tool_choice: { type: "tool", name: "bash" } });
    const [call] = message.content;
    expect(call).toMatchObject({ type: "tool_use", name: "bash" });
    expect(["command", "restart"]).toEqual(expect.arrayContaining(Object.keys(Object(call).input)));
  });

  test("have a model list in the format of the API", async () => {
    const ids: string[] = [];
    for await (const { id } of client.models.list({ limit: 1 })) ids.push(id);
    expect(ids).toContain(model);
    expect(await client.models.retrieve(model)).toMatchObject({ type: "model", id: model });
  });

  test("end at max_tokens", async () => {
    const message = await create({ max_tokens: 8, output_config: ENDLESS });
    expect(message).toMatchObject({ stop_reason: "max_tokens", usage: { output_tokens: 8 } });
  });

  test("stream blocks in order with the prompt's length at the start", async () => {
    const stream = client.messages.stream({ model, max_tokens: 64, messages, output_config: ENDLESS });
    const types: string[] = [];
    let promptTokens = 0;
    stream.on("streamEvent", (event) => {
      if (event.type !== types.at(-1)) types.push(event.type);
      if (event.type === "message_start") promptTokens = promptOf(event.message);
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
    expect(promptTokens).toBeGreaterThan(1);
    expect(promptOf(message)).toBe(promptTokens);
  });

  test("call a required tool and continue with its result", async () => {
    const question = [{ role: "user" as const, content: QUESTION_FOR_WEATHER }];
    const body = { model, max_tokens: AMPLE_TOKENS, ...GREEDY, tools: [TOOL], messages: question };
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
        ...question,
        { role: "assistant", content: message.content },
        { role: "user", content: [{ type: "tool_result", tool_use_id: use!.id, content: "Sunny." }] },
      ],
    });
    expect(promptOf(answer)).toBeGreaterThan(promptOf(message));
    expect(answer.usage.cache_read_input_tokens).toBeGreaterThan(promptOf(message) / 2);
  });

  test("return reasoning in a signed block and accept it in the next request", async () => {
    const thinking = { type: "enabled" as const, budget_tokens: 1024 };
    const question = [{ role: "user" as const, content: QUESTION_TO_THINK_ABOUT }];
    const message = await create({ max_tokens: 6, thinking, messages: question });
    expect(message.content[0]).toEqual({
      type: "thinking",
      thinking: expect.stringMatching(/./s),
      signature: expect.stringMatching(/./),
    });
    const again = await client.messages.create({
      model,
      max_tokens: 4,
      thinking,
      messages: [
        ...question,
        { role: "assistant", content: [...message.content, { type: "text", text: "Hm." }] },
        { role: "user", content: "And?" },
      ],
    });
    expect(promptOf(again)).toBeGreaterThan(promptOf(message));
  });

  test("stop at a stop sequence and report it", async () => {
    const schema = { type: "object", properties: { a: { const: "stop here now" } }, required: ["a"] };
    const message = await client.messages.create({
      model,
      max_tokens: AMPLE_TOKENS,
      ...GREEDY,
      messages,
      stop_sequences: ["here"],
      output_config: { format: { type: "json_schema", schema } },
    });
    expect(message).toMatchObject({ stop_reason: "stop_sequence", stop_sequence: "here" });
    expect(JSON.stringify(message.content)).not.toContain("here");
  });

  test("end when the client disconnects", async () => {
    const stream = await client.messages.create({
      model,
      max_tokens: 1500,
      messages,
      output_config: ENDLESS,
      stream: true,
    });
    await stream[Symbol.asyncIterator]().next();
    stream.controller.abort();
    await expect.poll(() => activeRequests(daemon)).toBe(0);
  });

  test("raise the client's error classes", async () => {
    await expect(create({ model: "no-such-model" })).rejects.toThrow(NotFoundError);
    await expect(create({ messages: [] })).rejects.toThrow(BadRequestError);
    await expect(
      create({ messages: [{ role: "user", content: "word ".repeat(4000) }] }),
    ).rejects.toMatchObject({
      status: 400,
      error: {
        error: {
          type: "invalid_request_error",
          code: "context_length_exceeded",
          // Clients recognize a too long conversation by this text.
          message: expect.stringMatching(/^prompt is too long: \d+ tokens > \d+ maximum\. /),
        },
      },
    });
  });
});
