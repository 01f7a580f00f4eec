import { BadRequestError, InternalServerError, NotFoundError } from "openai";
import { accumulateResponse } from "openai/lib/responses/ResponseAccumulator";
import type { Response as OpenAIResponse, ResponseStreamEvent } from "openai/resources/responses/responses";
import { describe, expect, test } from "vitest";
import {
  type ResponseObject,
  responseSchema,
} from "../../../../../src/api/openai/responses/response-object.ts";
import { ServiceError } from "../../../../../src/errors/service-error.ts";
import {
  failing,
  PLAIN_TEXT,
  randomAnswer,
  THINKING_AND_TOOLS,
  WITH_LOGPROBS,
} from "../../recorded-events.ts";
import { sseEvents, testApp } from "../../../../support/test-app.ts";
import { randomNumbers } from "../../../../support/random-numbers.ts";
import { clientOf } from "../chat-client.ts";

const PATH = "/v1/responses";
const body = { model: "fake", input: "hi" };

/** Parses events to the official client's types. Each is named after its type. */
async function eventsOf(answer: Response): Promise<ResponseStreamEvent[]> {
  const events = await sseEvents(answer);
  return events.map(({ event, data }) => {
    const parsed: ResponseStreamEvent = JSON.parse(data);
    expect(event).toBe(parsed.type);
    return parsed;
  });
}

/** Joins the deltas, ignoring the last event, which contains the complete response. */
function fold(events: readonly ResponseStreamEvent[]): OpenAIResponse {
  let snapshot: OpenAIResponse | undefined;
  for (const event of events.slice(0, -1)) snapshot = accumulateResponse(event, snapshot);
  return snapshot!;
}

const withoutIds = (output: unknown): unknown =>
  JSON.parse(JSON.stringify(output, (key, value: unknown) => (key === "id" ? "id" : value)));

describe("a non-streaming response", () => {
  test("has an item for reasoning, text and each tool call", async () => {
    const answer = await testApp({ events: THINKING_AND_TOOLS }).post(PATH, body);
    const response = responseSchema.strict().parse(await answer.json());
    expect(response).toMatchObject({
      id: expect.stringMatching(/^resp_/),
      object: "response",
      status: "completed",
      model: "fake",
      error: null,
      incomplete_details: null,
      usage: {
        input_tokens: 24,
        input_tokens_details: { cached_tokens: 8 },
        output_tokens: 31,
        output_tokens_details: { reasoning_tokens: 6 },
        total_tokens: 55,
      },
    });
    expect(response.output).toEqual([
      {
        type: "reasoning",
        id: expect.stringMatching(/^rs_/),
        status: "completed",
        summary: [{ type: "summary_text", text: "The user wants the weather." }],
      },
      {
        type: "message",
        id: expect.stringMatching(/^msg_/),
        status: "completed",
        role: "assistant",
        content: [{ type: "output_text", text: "Let me look — “ok”.", annotations: [], logprobs: [] }],
      },
      {
        type: "function_call",
        id: expect.stringMatching(/^fc_/),
        status: "completed",
        call_id: "call_a",
        name: "get_weather",
        arguments: '{"city":"Köln"}',
      },
      {
        type: "function_call",
        id: expect.stringMatching(/^fc_/),
        status: "completed",
        call_id: "call_b",
        name: "get_time",
        arguments: "{}",
      },
    ]);
  });

  test("repeats the request's fields", async () => {
    const tools = [{ type: "function", name: "now", parameters: { type: "object" } }];
    const request = {
      instructions: "Be brief.",
      max_output_tokens: 9,
      metadata: { a: "b" },
      parallel_tool_calls: false,
      reasoning: { effort: "low", summary: null },
      store: false,
      temperature: 0.5,
      text: { format: { type: "json_object" } },
      tool_choice: "none",
      tools,
      top_p: 0.5,
    };
    const answer = await testApp({ events: PLAIN_TEXT }).post(PATH, { ...body, ...request });
    expect(await answer.json()).toMatchObject(request);
  });

  test("is incomplete at the token limit, like its last item", async () => {
    const events = PLAIN_TEXT.map((event) =>
      event.type === "done" ? { ...event, reason: "length" as const } : event,
    );
    const response = await clientOf(testApp({ events })).responses.create(body);
    expect(response).toMatchObject({
      status: "incomplete",
      incomplete_details: { reason: "max_output_tokens" },
      completed_at: null,
      output: [{ type: "message", status: "incomplete" }],
      output_text: "Hello world",
    });
  });

  test("has an empty message without text, because agents would retry otherwise", async () => {
    const events = PLAIN_TEXT.filter(({ type }) => type !== "text-delta");
    const response = await clientOf(testApp({ events })).responses.create(body);
    expect(response.output).toMatchObject([
      { type: "message", content: [{ type: "output_text", text: "" }] },
    ]);
  });

  test("reports log probabilities", async () => {
    const all = testApp({ events: WITH_LOGPROBS });
    const answer = await clientOf(all).responses.create({
      ...body,
      include: ["message.output_text.logprobs"],
      top_logprobs: 1,
    });
    expect(all.lastRequest().logprobs).toBe(1);
    expect(answer.output).toMatchObject([
      {
        content: [
          {
            logprobs: [
              { token: "Hello", logprob: -0.5, top_logprobs: [{ token: "x", logprob: -1, bytes: [120] }] },
              { token: " world" },
            ],
          },
        ],
      },
    ]);
  });
});

describe("a streamed response", () => {
  test("sends every event of every item in order, numbered from 0", async () => {
    const answer = await testApp({ events: THINKING_AND_TOOLS }).post(PATH, { ...body, stream: true });
    expect(answer.headers.get("content-type")).toContain("text/event-stream");
    const events = await eventsOf(answer);
    expect(events.map(({ type }) => type.slice("response.".length))).toEqual([
      "created",
      "in_progress",
      "output_item.added",
      "reasoning_summary_part.added",
      "reasoning_summary_text.delta",
      "reasoning_summary_text.delta",
      "reasoning_summary_text.done",
      "reasoning_summary_part.done",
      "output_item.done",
      "output_item.added",
      "content_part.added",
      "output_text.delta",
      "output_text.delta",
      "output_text.done",
      "content_part.done",
      "output_item.done",
      "output_item.added",
      "function_call_arguments.delta",
      "function_call_arguments.delta",
      "function_call_arguments.done",
      "output_item.done",
      "output_item.added",
      "function_call_arguments.delta",
      "function_call_arguments.done",
      "output_item.done",
      "completed",
    ]);
    expect(events.map((event) => ("sequence_number" in event ? event.sequence_number : -1))).toEqual(
      events.map((_, index) => index),
    );
    const indexes = events.flatMap((event) => ("output_index" in event ? [event.output_index] : []));
    expect(indexes).toEqual(indexes.toSorted((one, other) => one - other));
    expect(new Set(indexes)).toEqual(new Set([0, 1, 2, 3]));
  });

  test("is accumulated by the official client to the same response as without streaming", async () => {
    const random = randomNumbers(9);
    for (let round = 0; round < 30; round += 1) {
      const all = testApp({ events: randomAnswer(random) });
      const complete = await clientOf(all).responses.create(body);
      const events = await eventsOf(await all.post(PATH, { ...body, stream: true }));
      const last = events.at(-1);
      expect(last?.type).toBe(`response.${complete.status}`);
      if (last?.type !== "response.completed" && last?.type !== "response.incomplete") return;
      expect(fold(events).output).toEqual(last.response.output);
      expect(withoutIds(last.response.output)).toEqual(withoutIds(complete.output));
      expect(last.response.usage).toEqual(complete.usage);
      expect(fold(events).output_text).toBe(complete.output_text);
    }
  });

  test("ends with response.incomplete at the token limit", async () => {
    const events = PLAIN_TEXT.map((event) =>
      event.type === "done" ? { ...event, reason: "length" as const } : event,
    );
    const streamed = await eventsOf(await testApp({ events }).post(PATH, { ...body, stream: true }));
    expect(streamed.at(-1)).toMatchObject({
      type: "response.incomplete",
      response: { incomplete_details: { reason: "max_output_tokens" } },
    });
  });

  test("ends with response.failed if generation fails", async () => {
    const all = testApp();
    all.engine.script = () => failing(new ServiceError("engine_crashed", "It is gone."));
    const response = await clientOf(all).responses.stream(body).finalResponse();
    expect(response).toMatchObject({
      status: "failed",
      error: { code: "engine_crashed", message: "It is gone." },
    });
    await expect(clientOf(all).responses.retrieve(response.id)).rejects.toThrow(NotFoundError);
  });

  test("cancels generation if the client aborts", async () => {
    const all = testApp();
    const stream = await clientOf(all).responses.create({ ...body, stream: true });
    await stream[Symbol.asyncIterator]().next();
    stream.controller.abort();
    await expect.poll(() => all.metrics.totals.activeRequests).toBe(0);
    expect(all.engine.inFlight).toBe(0);
  });
});

test("counts the tokens of a conversation without generating", async () => {
  const all = testApp({ events: PLAIN_TEXT });
  const client = clientOf(all);
  const { id } = await client.responses.create(body);
  const count = await client.responses.inputTokens.count({
    model: "fake",
    input: "And?",
    previous_response_id: id,
    instructions: "Be brief.",
  });
  expect(count).toEqual({ object: "response.input_tokens", input_tokens: 5 });
  const { input } = all.lastRequest();
  expect(input.kind === "chat" && input.messages.map(({ role }) => role)).toEqual([
    "system",
    "user",
    "assistant",
    "user",
  ]);
  await expect.poll(() => all.metrics.totals.activeRequests).toBe(0);
});

describe("unsupported fields are rejected by name", () => {
  test.for([
    [{ input: [] }, "input"],
    [{ background: true }, "background"],
    [{ conversation: "conv_1" }, "conversation"],
    [{ input: [{ type: "item_reference", id: "msg_1" }] }, "input[0].id"],
    [{ input: [{ type: "hologram", id: "ws_1" }] }, "input[0].type"],
    [{ input: [{ role: "user", content: [{ type: "input_file" }] }] }, "input[0].content[0]"],
    [
      { input: [{ role: "user", content: [{ type: "input_image", image_url: "https://a.test/b.png" }] }] },
      "input[0].content[0].image_url",
    ],
    [{ input: [{ role: "user", content: [{ type: "input_image", file_id: "f" }] }] }, "input[0].content[0]"],
    [{ tools: [{ type: "function" }] }, "tools[0].name"],
    [{ tool_choice: "required" }, "tool_choice"],
    [{ top_logprobs: 21 }, "top_logprobs"],
  ] as const)("rejects %j", async ([wrong, param]) => {
    const answer = await testApp().post(PATH, { ...body, ...wrong });
    expect(answer.status).toBe(400);
    expect(await answer.json()).toMatchObject({ error: { param } });
  });

  test("raises the official client's error classes", async () => {
    const all = testApp();
    const client = clientOf(all);
    await expect(client.responses.create({ ...body, input: [] })).rejects.toThrow(BadRequestError);
    all.engine.script = () => failing(new ServiceError("engine_crashed", "It is gone."));
    await expect(client.responses.create(body)).rejects.toThrow(InternalServerError);
  });
});

test("the response matches its schema in every event", async () => {
  const events = await eventsOf(await testApp({ events: PLAIN_TEXT }).post(PATH, { ...body, stream: true }));
  const [created] = events;
  expect(created?.type).toBe("response.created");
  const begun: ResponseObject = responseSchema
    .strict()
    .parse(created?.type === "response.created" && created.response);
  expect(begun).toMatchObject({ status: "in_progress", output: [], usage: null });
});
