import { describe, expect, test } from "vitest";
import {
  completionChunkSchema,
  completionSchema,
} from "../../../../src/api/llama-server/completion-answer.ts";
import type { GenerationEvent } from "../../../../src/engine/protocol/generation.ts";
import { sseEvents, testApp } from "../../../support/test-app.ts";
import { failing, PLAIN_TEXT, PROGRESS, WITH_LOGPROBS } from "../recorded-events.ts";

const DETAILS = { prompt: "<s>hi", slot: 2, tokensInCache: 6, truncated: false };
const withDetails = (events: readonly GenerationEvent[]): GenerationEvent[] =>
  events.map((event) => (event.type === "done" ? { ...event, details: DETAILS } : event));

/** Token in the format of llama.cpp's server. */
const token = (id: number, text: string) => ({
  id,
  token: text,
  bytes: [...Buffer.from(text)],
  logprob: -0.5,
  top_logprobs: [{ id: 120, token: "x", bytes: [120], logprob: -1 }],
});

async function complete(body: object, events: readonly GenerationEvent[] = withDetails(PLAIN_TEXT)) {
  const app = testApp({ events });
  const answer = await app.post("/completion", body);
  const json: unknown = await answer.json();
  return { status: answer.status, json, app };
}

describe("a llama-server completion", () => {
  test("has all fields of llama.cpp's server", async () => {
    const { json, app } = await complete({ prompt: "hi", n_predict: 4, stop: ["END"], temperature: 0 });
    expect(completionSchema.strict().parse(json)).toEqual({
      index: 0,
      content: "Hello world",
      tokens: [],
      id_slot: 2,
      stop: true,
      model: "fake",
      tokens_predicted: 2,
      tokens_evaluated: 5,
      generation_settings: expect.objectContaining({
        temperature: 0,
        top_k: 40,
        min_p: 0.05,
        n_predict: 4,
        stop: ["END"],
        stream: false,
      }),
      prompt: "<s>hi",
      has_new_line: false,
      truncated: false,
      stop_type: "eos",
      stopping_word: "",
      tokens_cached: 6,
      timings: {
        cache_n: 0,
        prompt_n: 5,
        prompt_ms: 10,
        prompt_per_token_ms: 2,
        prompt_per_second: 500,
        predicted_n: 2,
        predicted_ms: 20,
        predicted_per_token_ms: 10,
        predicted_per_second: 100,
      },
    });
    expect(app.lastRequest()).toMatchObject({
      input: { kind: "prompt", prompt: "hi" },
      maxTokens: 4,
      stop: ["END"],
      details: true,
    });
  });

  test.each([
    [
      "a stop sequence",
      { stopSequence: "END" },
      { stop_type: "word", stopping_word: "END", truncated: false },
    ],
    ["the limit", { reason: "length" as const }, { stop_type: "limit", stopping_word: "", truncated: true }],
  ])("reports %s as the reason for its end", async (_what, done, expected) => {
    const events = PLAIN_TEXT.map((event) => (event.type === "done" ? { ...event, ...done } : event));
    expect((await complete({ prompt: "hi" }, events)).json).toMatchObject(expected);
  });

  test("streams events, of which the last has all other fields, without [DONE]", async () => {
    const answer = await testApp({ events: withDetails(PLAIN_TEXT) }).post("/completions", {
      prompt: "hi",
      stream: true,
      return_progress: true,
    });
    expect(answer.headers.get("content-type")).toContain("text/event-stream");
    const chunks = (await sseEvents(answer)).map(({ data }) => completionChunkSchema.parse(JSON.parse(data)));
    expect(chunks.map(({ content, stop }) => [content, stop])).toEqual([
      ["", false],
      ["Hello", false],
      [" world", false],
      ["", true],
    ]);
    expect(chunks[0]).toMatchObject({ prompt_progress: PROGRESS });
    expect(chunks.at(-1)).toMatchObject({ id_slot: 2, prompt: "<s>hi", stop_type: "eos" });
  });

  test.each(["n_probs", "logprobs"])(
    "reports token IDs, and probabilities with %s, streamed or not",
    async (field) => {
      const request = { prompt: "hi", [field]: 1, return_tokens: true };
      const { json, app } = await complete(request, WITH_LOGPROBS);
      const expected = [token(5, "Hello"), token(6, " world")];
      expect(json).toMatchObject({ tokens: [5, 6], completion_probabilities: expected });
      const streamed = await sseEvents(await app.post("/completion", { ...request, stream: true }));
      expect(JSON.parse(streamed[0]?.data ?? "")).toMatchObject({
        tokens: [5],
        completion_probabilities: [expected[0]],
      });
    },
  );

  test("accepts true and false for logprobs as 1 and 0", async () => {
    const { json } = await complete({ prompt: "hi", logprobs: true }, WITH_LOGPROBS);
    expect(json).toHaveProperty("completion_probabilities");
    const { json: without } = await complete({ prompt: "hi", logprobs: false }, WITH_LOGPROBS);
    expect(without).not.toHaveProperty("completion_probabilities");
  });

  test("returns only the response_fields, by their paths", async () => {
    const fields = ["content", "timings/prompt_n", "nothing", "timings/no", "__proto__/a", "constructor"];
    const { json } = await complete({ prompt: "hi", response_fields: fields });
    expect(json).toEqual({ content: "Hello world", "timings/prompt_n": 5 });
  });

  test("only processes the prompt with n_predict 0", async () => {
    const { json, app } = await complete({ prompt: "hi", n_predict: 0 });
    expect(json).toMatchObject({ content: "", tokens: [], tokens_predicted: 0, tokens_evaluated: 5 });
    expect(app.lastRequest().maxTokens).toBe(1);
  });

  test("has no token limit without n_predict or with -1", async () => {
    for (const body of [{}, { n_predict: -1 }])
      expect((await complete({ prompt: "hi", ...body })).app.lastRequest().maxTokens).toBeUndefined();
  });

  test("returns an array in order for several prompts or choices", async () => {
    const several = await complete({ prompt: ["a", { prompt_string: "b" }], n_cmpl: 2 });
    expect(several.json).toMatchObject([{ index: 0 }, { index: 1 }, { index: 2 }, { index: 3 }]);
    expect(several.app.engine.requests.map(({ input }) => Object(input)["prompt"])).toEqual([
      "a",
      "a",
      "b",
      "b",
    ]);
  });

  test("converts token IDs, or a mix of text and token IDs, to text", async () => {
    for (const prompt of [[104, 105], ["h", 105], [[104, 105]]]) {
      const { status, app } = await complete({ prompt });
      expect(status).toBe(200);
      expect(app.lastRequest().input).toEqual({ kind: "prompt", prompt: "hi" });
    }
  });

  test.each([
    ["no prompt", {}, 400, "invalid_request_error", /prompt/],
    ["no prompts", { prompt: [] }, 400, "invalid_request_error", /prompt/],
    ["an unknown model", { prompt: "a", model: "none" }, 404, "not_found_error", /none/],
    ["a wrong limit", { prompt: "a", n_predict: -3 }, 400, "invalid_request_error", /n_predict/],
    [
      "media",
      { prompt: { prompt_string: "a", multimodal_data: ["x"] } },
      400,
      "invalid_request_error",
      /media|prompt/,
    ],
    [
      "probabilities after sampling",
      { prompt: "a", post_sampling_probs: true },
      400,
      "invalid_request_error",
      /post_sampling_probs/,
    ],
    [
      "adapters that the model does not have",
      { prompt: "a", lora: [{ id: 0, scale: 1 }] },
      400,
      "invalid_request_error",
      /lora/,
    ],
    [
      "two formats",
      { prompt: "a", grammar: "root ::= [a]", json_schema: {} },
      400,
      "invalid_request_error",
      /grammar/,
    ],
  ])("rejects %s with llama.cpp's error format", async (_what, body, code, type, message) => {
    const { status, json } = await complete(body);
    expect(status).toBe(code);
    expect(json).toEqual({ error: { code, type, message: expect.stringMatching(message) } });
  });

  test("ends with an error event if generation fails in the stream", async () => {
    const app = testApp();
    app.engine.script = () => failing(new Error("broken"));
    const events = await sseEvents(await app.post("/completion", { prompt: "hi", stream: true }));
    expect(JSON.parse(events.at(-1)?.data ?? "")).toMatchObject({
      error: { code: 500, type: "server_error" },
    });
  });
});
