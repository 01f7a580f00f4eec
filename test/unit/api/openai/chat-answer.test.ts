import { describe, expect, test } from "vitest";
import { ServiceError } from "../../../../src/errors/service-error.ts";
import {
  failing,
  PLAIN_TEXT,
  randomAnswer,
  randomFailure,
  THINKING_AND_TOOLS,
  WITH_LOGPROBS,
} from "../recorded-events.ts";
import { sseEvents, testApp } from "../../../support/test-app.ts";
import { chunksOf, clientOf, messages, PATH } from "./chat-client.ts";
import { randomNumbers } from "../../../support/random-numbers.ts";

function foldReasoning(chunks: ReturnType<typeof chunksOf>): string {
  return chunks.map(({ choices }) => choices[0]?.delta.reasoning_content ?? "").join("");
}

function reasoningOf(message: object): unknown {
  return "reasoning_content" in message ? message.reasoning_content : "";
}

describe("a non-streaming chat completion", () => {
  test("has the API's format", async () => {
    const answer = await testApp({ events: THINKING_AND_TOOLS }).post(PATH, { model: "fake", messages });
    expect(await answer.json()).toEqual({
      id: expect.stringMatching(/^chatcmpl-/),
      object: "chat.completion",
      created: expect.any(Number),
      model: "fake",
      choices: [
        {
          index: 0,
          message: {
            role: "assistant",
            content: "Let me look — “ok”.",
            refusal: null,
            reasoning_content: "The user wants the weather.",
            tool_calls: [
              {
                id: "call_a",
                type: "function",
                function: { name: "get_weather", arguments: '{"city":"Köln"}' },
              },
              { id: "call_b", type: "function", function: { name: "get_time", arguments: "{}" } },
            ],
          },
          logprobs: null,
          finish_reason: "tool_calls",
        },
      ],
      usage: {
        prompt_tokens: 24,
        completion_tokens: 31,
        total_tokens: 55,
        prompt_tokens_details: { cached_tokens: 8 },
        completion_tokens_details: { reasoning_tokens: 6 },
      },
    });
  });

  test("has null content with only tool calls", async () => {
    const calls = THINKING_AND_TOOLS.filter(({ type }) => type !== "text-delta");
    const answer = await clientOf(testApp({ events: calls })).chat.completions.create({
      model: "fake",
      messages,
    });
    expect(answer.choices[0]?.message.content).toBeNull();
  });

  test("reports log probabilities", async () => {
    const all = testApp({ events: WITH_LOGPROBS });
    const answer = await clientOf(all).chat.completions.create({
      model: "fake",
      messages,
      logprobs: true,
      top_logprobs: 1,
    });
    expect(all.lastRequest().logprobs).toBe(1);
    expect(answer.choices[0]?.logprobs?.content?.[0]).toEqual({
      token: "Hello",
      logprob: -0.5,
      bytes: [72, 101, 108, 108, 111],
      top_logprobs: [{ token: "x", logprob: -1, bytes: [120] }],
    });
  });
});

describe("a streamed chat completion", () => {
  test("sends the role, deltas, the finish reason and [DONE], without usage by default", async () => {
    const answer = await testApp({ events: PLAIN_TEXT }).post(PATH, { messages, stream: true });
    expect(answer.headers.get("content-type")).toContain("text/event-stream");
    expect(answer.headers.get("cache-control")).toBe("no-cache");
    const events = await sseEvents(answer);
    expect(events.every(({ event }) => event === undefined)).toBe(true);
    const head = {
      id: expect.stringMatching(/^chatcmpl-/),
      object: "chat.completion.chunk",
      created: expect.any(Number),
      model: "fake",
    };
    const chunk = (delta: object, finish: string | null = null) => ({
      ...head,
      choices: [{ index: 0, delta, finish_reason: finish }],
    });
    expect(chunksOf(events)).toEqual([
      chunk({ role: "assistant", content: "" }),
      chunk({ content: "Hello" }),
      chunk({ content: " world" }),
      chunk({}, "stop"),
    ]);
    expect(new Set(chunksOf(events).map(({ id }) => id)).size).toBe(1);
  });

  test("ends with the usage if requested, which is null before", async () => {
    const answer = await testApp({ events: PLAIN_TEXT }).post(PATH, {
      messages,
      stream: true,
      stream_options: { include_usage: true },
    });
    const chunks = chunksOf(await sseEvents(answer));
    expect(chunks.slice(0, -1).every(({ usage }) => usage === null)).toBe(true);
    expect(chunks.at(-1)).toMatchObject({
      choices: [],
      usage: { prompt_tokens: 5, completion_tokens: 2, total_tokens: 7 },
    });
  });

  test("sends a tool call's name once, and its arguments in deltas", async () => {
    const answer = await testApp({ events: THINKING_AND_TOOLS }).post(PATH, { messages, stream: true });
    const deltas = chunksOf(await sseEvents(answer))
      .map(({ choices }) => choices[0]?.delta.tool_calls)
      .filter((calls) => calls !== undefined);
    expect(deltas).toEqual([
      [{ index: 0, id: "call_a", type: "function", function: { name: "get_weather", arguments: "" } }],
      [{ index: 0, function: { arguments: '{"city":' } }],
      [{ index: 0, function: { arguments: '"Köln"}' } }],
      [{ index: 1, id: "call_b", type: "function", function: { name: "get_time", arguments: "" } }],
      [{ index: 1, function: { arguments: "{}" } }],
    ]);
  });

  test("is accumulated by the official client to the same answer as without streaming", async () => {
    const random = randomNumbers(9);
    for (let round = 0; round < 60; round += 1) {
      const all = testApp({ events: randomAnswer(random) });
      const client = clientOf(all);
      const body = { model: "fake", messages, logprobs: true };
      const complete = await client.chat.completions.create(body);
      const stream = { ...body, stream_options: { include_usage: true } };
      const folded = await client.chat.completions.stream(stream).finalChatCompletion();
      const answer = await all.post(PATH, { ...stream, stream: true });
      const chunks = chunksOf(await sseEvents(answer));
      expect(foldReasoning(chunks)).toBe(reasoningOf(complete.choices[0]!.message));
      expect(chunks.at(-1)?.usage).toEqual(complete.usage);
      const { message, finish_reason: reason } = complete.choices[0]!;
      const streamed = folded.choices[0]!;
      expect(streamed.message.content ?? "").toBe(message.content ?? "");
      expect(streamed.finish_reason).toBe(reason);
      expect(streamed.logprobs?.content ?? []).toEqual(complete.choices[0]?.logprobs?.content ?? []);
      expect(
        (streamed.message.tool_calls ?? []).map((call) => [
          call.id,
          call.function.name,
          call.function.arguments,
        ]),
      ).toEqual(
        (message.tool_calls ?? []).map(
          (call) => call.type === "function" && [call.id, call.function.name, call.function.arguments],
        ),
      );
    }
  });

  test("ends with the same error as without streaming if generation fails at any point", async () => {
    const random = randomNumbers(10);
    const error = new ServiceError("engine_crashed", "It is gone.");
    for (let round = 0; round < 40; round += 1) {
      const all = testApp();
      all.engine.script = () => randomFailure(random, error);
      const raised = { code: "engine_crashed" };
      const client = clientOf(all);
      await expect(client.chat.completions.create({ model: "fake", messages })).rejects.toMatchObject(raised);
      const streamed = client.chat.completions.stream({ model: "fake", messages });
      await expect(streamed.finalChatCompletion()).rejects.toMatchObject(raised);
      const answer = await all.post(PATH, { messages, stream: true });
      if (answer.status !== 200) continue;
      const events = await sseEvents(answer);
      expect(JSON.parse(events.at(-1)!.data)).toMatchObject({ error: raised });
      expect(events.some(({ data }) => data === "[DONE]")).toBe(false);
    }
  });

  test("throws in the official client if generation fails", async () => {
    const all = testApp();
    all.engine.script = () => failing(new ServiceError("engine_crashed", "It is gone."));
    const stream = await clientOf(all).chat.completions.create({ model: "fake", messages, stream: true });
    const read = async () => {
      for await (const chunk of stream) expect(chunk.choices).toHaveLength(1);
    };
    await expect(read()).rejects.toThrow("It is gone.");
  });

  test("cancels generation if the client aborts", async () => {
    const all = testApp();
    const stream = await clientOf(all).chat.completions.create({ model: "fake", messages, stream: true });
    await stream[Symbol.asyncIterator]().next();
    stream.controller.abort();
    await expect.poll(() => all.metrics.totals.activeRequests).toBe(0);
    expect(all.engine.inFlight).toBe(0);
  });
});
