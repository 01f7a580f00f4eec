import { partialParse } from "@anthropic-ai/sdk/_vendor/partial-json-parser/parser.mjs";
import { describe, expect, test } from "vitest";
import { messageSchema, parseInput } from "../../../../src/api/anthropic/message-answer.ts";
import type { GenerationEvent } from "../../../../src/engine/protocol/generation.ts";
import { ServiceError } from "../../../../src/errors/service-error.ts";
import { randomNumbers } from "../../../support/random-numbers.ts";
import { sseEvents, testApp } from "../../../support/test-app.ts";
import {
  failing,
  PLAIN_TEXT,
  randomAnswer,
  randomFailure,
  STOP,
  THINKING_AND_TOOLS,
} from "../recorded-events.ts";
import { BASE, clientOf, PATH } from "./message-client.ts";

function stopped(stopSequence: string): GenerationEvent[] {
  return PLAIN_TEXT.map((event) => (event.type === "done" ? { ...event, stopSequence } : event));
}

describe("a complete message", () => {
  test("has thinking, text and tool_use blocks in order", async () => {
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
        input_tokens: 16,
        output_tokens: 31,
        cache_creation_input_tokens: 0,
        cache_read_input_tokens: 8,
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
  ])("has stop_reason %s", async ([, events, reason, sequence]) => {
    const body = { ...BASE, stop_sequences: ["END"] };
    const complete = await clientOf(testApp({ events })).messages.create(body);
    const streamed = await clientOf(testApp({ events })).messages.stream(body).finalMessage();
    for (const message of [complete, streamed]) {
      expect([message.stop_reason, message.stop_sequence]).toEqual([reason, sequence]);
    }
  });

  test("contains the complete part of truncated arguments, as the official client's stream does", async () => {
    const events: GenerationEvent[] = [
      { type: "start" },
      { type: "tool-call-start", index: 0, id: "call_a", name: "add" },
      { type: "tool-call-delta", index: 0, arguments: '{"a": 1, "b": [2, {"c": "x"}, "y' },
      ...PLAIN_TEXT.flatMap((event) =>
        event.type === "done" ? [{ ...event, reason: "length" as const }] : [],
      ),
    ];
    const message = await clientOf(testApp({ events })).messages.create(BASE);
    const streamed = await clientOf(testApp({ events })).messages.stream(BASE).finalMessage();
    const input = { a: 1, b: [2, { c: "x" }] };
    expect(message.content).toEqual([{ type: "tool_use", id: "toolu_a", name: "add", input }]);
    expect(streamed.content).toMatchObject(message.content);
  });
});

describe("a streamed message", () => {
  test("sends every event in order, named after its type", async () => {
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
      usage: expect.objectContaining({
        input_tokens: 16,
        output_tokens: 31,
        cache_read_input_tokens: 8,
      }),
    });
  });

  test("is accumulated by the official client to the same message as without streaming", async () => {
    const random = randomNumbers(13);
    const body = { ...BASE, stop_sequences: [STOP] };
    for (let round = 0; round < 60; round += 1) {
      const client = clientOf(testApp({ events: randomAnswer(random) }));
      // The client only accumulates the API's own fields.
      const created = messageSchema.parse(await client.messages.create(body));
      const { id: _whole, limited_by: _limit, ...complete } = created;
      const { id: _streamed, ...streamed } = await client.messages.stream(body).finalMessage();
      expect(streamed).toMatchObject(structuredClone({ ...complete, content: complete.content }));
      expect(streamed.content).toHaveLength(complete.content.length);
    }
  });

  test("ends with the same error as without streaming if generation fails at any point", async () => {
    const random = randomNumbers(14);
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

  test("throws in the official client if generation fails", async () => {
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

  test("cancels generation if the client aborts", async () => {
    const all = testApp();
    const stream = await clientOf(all).messages.create({ ...BASE, stream: true });
    await stream[Symbol.asyncIterator]().next();
    stream.controller.abort();
    await expect.poll(() => all.metrics.totals.activeRequests).toBe(0);
    expect(all.engine.inFlight).toBe(0);
  });
});

const WHOLE = JSON.stringify(
  {
    city: 'Kö\\ln "{[,',
    days: [1, -2.5e3, { deep: [[], [null, true]] }],
    said: 'so, "yes, no"',
    flags: { a: false, b: {}, c: "" },
    end: 12,
  },
  undefined,
  1,
);

test("parses arguments truncated at any position like the official client", () => {
  for (let length = 1; length <= WHOLE.length; length += 1) {
    const text = WHOLE.slice(0, length);
    expect({ text, input: parseInput(text) }).toEqual({ text, input: partialParse(text) });
  }
});

test.each(["", "nothing", "[1]", "3", '{"a": }'])("returns an empty object for %j", (text) => {
  expect(parseInput(text)).toEqual({});
});
