import { BadRequestError, NotFoundError } from "openai";
import { describe, expect, test } from "vitest";
import type { ResponseObject } from "../../../../../src/api/openai/responses/response-object.ts";
import { ResponseStore } from "../../../../../src/api/openai/responses/response-store.ts";
import { ServiceError } from "../../../../../src/errors/service-error.ts";
import { testApp, type TestApp } from "../../../../support/test-app.ts";
import { PLAIN_TEXT, THINKING_AND_TOOLS } from "../../recorded-events.ts";
import { clientOf } from "../chat-client.ts";
import { responseOf } from "./response-of.ts";

/** Limit for three of the responses below. */
const LIMIT = 6000;

function filled(...texts: string[]): { store: ResponseStore; responses: ResponseObject[] } {
  const store = new ResponseStore(LIMIT);
  const responses = texts.map(responseOf);
  for (const response of responses) store.add(response, response.output);
  return { store, responses };
}

const small = "x".repeat(500);

describe("the response store", () => {
  test("stores complete conversations and finds single items", () => {
    const { store, responses } = filled("Hello");
    const [response] = responses;
    expect(store.get(response!.id)).toMatchObject({ response, items: response!.output });
    expect(store.item(response!.output[0]!.id)).toEqual(response!.output[0]);
  });

  test("evicts the least recently used response with its items if it is full", () => {
    const { store, responses } = filled(small, small, small);
    const [first, second, third] = responses;
    expect(store.get(first!.id)).toBeDefined();
    const fourth = responseOf(small);
    store.add(fourth, fourth.output);
    expect([first, second, third, fourth].map((response) => store.get(response!.id) !== undefined)).toEqual([
      true,
      false,
      true,
      true,
    ]);
    expect(store.item(second!.output[0]!.id)).toBeUndefined();
  });

  test("does not store a response that exceeds the limit, and keeps the others", () => {
    const { store, responses } = filled("Hello", "y".repeat(LIMIT));
    expect(responses.map(({ id }) => store.get(id) !== undefined)).toEqual([true, false]);
  });

  test("frees the memory of deleted responses", () => {
    const { store, responses } = filled(small, small, small);
    expect(store.delete(responses[2]!.id)).toBe(true);
    expect(store.delete(responses[2]!.id)).toBe(false);
    const another = responseOf(small);
    store.add(another, another.output);
    expect([responses[0]!, responses[1]!, another].every(({ id }) => store.get(id))).toBe(true);
  });
});

const body = { model: "fake", input: "hi" };

describe("stored responses", () => {
  test("are continued by later requests, without their instructions", async () => {
    const all = testApp({ events: PLAIN_TEXT });
    const client = clientOf(all);
    const first = await client.responses.create({ ...body, instructions: "Be brief." });
    const second = await client.responses
      .stream({ ...body, input: "And?", previous_response_id: first.id })
      .finalResponse();
    expect(second.previous_response_id).toBe(first.id);
    await client.responses.create({ ...body, input: "Well?", previous_response_id: second.id });
    const { input } = all.lastRequest();
    expect(input.kind === "chat" && input.messages.map(({ role, content }) => [role, content])).toEqual([
      ["user", [{ type: "text", text: "hi" }]],
      ["assistant", [{ type: "text", text: "Hello world" }]],
      ["user", [{ type: "text", text: "And?" }]],
      ["assistant", [{ type: "text", text: "Hello world" }]],
      ["user", [{ type: "text", text: "Well?" }]],
    ]);
  });

  test("provide items for item references", async () => {
    const all = testApp({ events: THINKING_AND_TOOLS });
    const client = clientOf(all);
    const first = await client.responses.create(body);
    await client.responses.create({
      ...body,
      input: [
        { role: "user", content: "hi" },
        ...first.output.map((item) => ({ type: "item_reference" as const, id: String(item.id) })),
        { type: "function_call_output", call_id: "call_a", output: "Sunny." },
        { type: "function_call_output", call_id: "call_b", output: "Noon." },
      ],
    });
    const { input } = all.lastRequest();
    expect(input.kind === "chat" && input.messages.map(({ role }) => role)).toEqual([
      "user",
      "assistant",
      "tool",
      "tool",
    ]);
  });

  test("can be read and deleted", async () => {
    const all = testApp({ events: PLAIN_TEXT });
    const client = clientOf(all);
    const response = await client.responses.create(body);
    expect(await client.responses.retrieve(response.id)).toMatchObject({ output: response.output });
    await expect(client.responses.retrieve(response.id, { stream: true })).rejects.toMatchObject({
      status: 400,
      param: "stream",
    });
    await client.responses.delete(response.id);
    await expect(client.responses.retrieve(response.id)).rejects.toMatchObject({
      status: 404,
      code: "response_not_found",
    });
    await expect(client.responses.delete(response.id)).rejects.toThrow(NotFoundError);
    await expect(
      client.responses.create({ ...body, previous_response_id: response.id }),
    ).rejects.toMatchObject({
      status: 400,
      code: "previous_response_not_found",
      param: "previous_response_id",
    });
  });

  test("are not stored with store false", async () => {
    const client = clientOf(testApp({ events: PLAIN_TEXT }));
    const { id } = await client.responses.create({ ...body, store: false });
    await expect(client.responses.retrieve(id)).rejects.toThrow(NotFoundError);
  });
});

describe("the input items of a response", () => {
  test("are listed with IDs, last item first by default", async () => {
    const client = clientOf(testApp({ events: THINKING_AND_TOOLS }));
    const first = await client.responses.create(body);
    const second = await client.responses.create({
      ...body,
      previous_response_id: first.id,
      input: [{ type: "function_call_output", call_id: "call_a", output: "Sunny." }],
    });
    const { data } = await client.responses.inputItems.list(second.id, { order: "asc" });
    expect(data).toMatchObject([
      { type: "message", role: "user", content: [{ type: "input_text", text: "hi" }] },
      ...first.output.map(({ id, type }) => ({ id, type })),
      { type: "function_call_output", call_id: "call_a", output: "Sunny." },
    ]);
    const ids = data.map(({ id }) => id);
    expect(new Set(ids).size).toBe(data.length);
    const listed: unknown[] = [];
    for await (const { id } of client.responses.inputItems.list(second.id, { limit: 2 })) listed.push(id);
    expect(listed).toEqual(ids.toReversed());
  });

  test("return 404 for an unknown response, and 400 for an unknown cursor", async () => {
    const client = clientOf(testApp({ events: PLAIN_TEXT }));
    await expect(client.responses.inputItems.list("resp_0")).rejects.toThrow(NotFoundError);
    const { id } = await client.responses.create(body);
    await expect(client.responses.inputItems.list(id, { after: "msg_0" })).rejects.toMatchObject({
      status: 400,
      param: "after",
    });
  });
});

test("rejects cancelling a complete response, and returns 404 for one that is not stored", async () => {
  const client = clientOf(testApp({ events: PLAIN_TEXT }));
  const { id } = await client.responses.create(body);
  await expect(client.responses.cancel(id)).rejects.toThrow(BadRequestError);
  await expect(client.responses.cancel("resp_0")).rejects.toThrow(NotFoundError);
});

/** Engine whose context fits this many messages. */
function appOf(messages: number): TestApp {
  const all = testApp();
  all.engine.script = async function* (request) {
    const { input: given } = request;
    if (given.kind === "chat" && given.messages.length > messages)
      throw new ServiceError("context_length_exceeded", "Too long.");
    yield* PLAIN_TEXT;
  };
  return all;
}

function turn(text: string) {
  return [
    { role: "user" as const, content: text },
    { role: "assistant" as const, content: `You said ${text}.` },
  ];
}

describe("a conversation that exceeds the context", () => {
  const input = [
    { role: "developer" as const, content: "Be brief." },
    ...["one", "two", "three", "four", "five"].flatMap(turn),
    { role: "user" as const, content: "And now?" },
  ];

  test("is shortened by its oldest turns with truncation auto, but keeps instructions and the last turn", async () => {
    const all = appOf(6);
    const response = await clientOf(all).responses.create({ ...body, input, truncation: "auto" });
    expect(response).toMatchObject({ status: "completed", truncation: "auto" });
    const { input: given } = all.lastRequest();
    const texts = given.kind === "chat" ? given.messages.map(({ content }) => content[0]) : [];
    expect(texts.length).toBeLessThanOrEqual(6);
    expect(texts[0]).toMatchObject({ text: "Be brief." });
    expect(texts.at(-1)).toMatchObject({ text: "And now?" });
    expect(given.kind === "chat" && given.messages[1]?.role).toBe("user");
  });

  test.each([null, "disabled" as const])("is rejected with truncation %s", async (truncation) => {
    const all = appOf(6);
    const refused = clientOf(all).responses.create({ ...body, input, truncation });
    await expect(refused).rejects.toMatchObject({ status: 400, code: "context_length_exceeded" });
    expect(all.engine.requests).toHaveLength(1);
  });

  test("is rejected if even its last turn does not fit", async () => {
    const refused = clientOf(appOf(0)).responses.create({ ...body, input, truncation: "auto" });
    await expect(refused).rejects.toMatchObject({ status: 400, code: "context_length_exceeded" });
  });
});
