import { NotFoundError } from "openai";
import { describe, expect, test } from "vitest";
import { fakeModel } from "../../../support/fake-models.ts";
import { PLAIN_TEXT, WITH_LOGPROBS } from "../recorded-events.ts";
import { sseEvents, testApp } from "../../../support/test-app.ts";
import { clientOf } from "./chat-client.ts";

/** Token IDs of the fake engine, which has a token per byte. */
function bytes(text: string): number[] {
  return [...Buffer.from(text)];
}

describe("text completions", () => {
  test("continue the prompt without the chat template", async () => {
    const all = testApp({ events: PLAIN_TEXT });
    const answer = await clientOf(all).completions.create({ model: "fake", prompt: "Once" });
    expect(all.lastRequest()).toMatchObject({ input: { kind: "prompt", prompt: "Once" }, maxTokens: 16 });
    expect(answer).toMatchObject({
      id: expect.stringMatching(/^cmpl-/),
      object: "text_completion",
      model: "fake",
      choices: [{ index: 0, text: "Hello world", logprobs: null, finish_reason: "stop" }],
      usage: { prompt_tokens: 5, completion_tokens: 2, total_tokens: 7 },
    });
  });

  test("answer several prompts with n choices each, in order", async () => {
    const all = testApp({ events: PLAIN_TEXT, slots: 2 });
    const prompts = ["a", "b", "c"];
    const answer = await clientOf(all).completions.create({
      model: "fake",
      prompt: prompts,
      n: 2,
      echo: true,
    });
    expect(answer.choices.map(({ index, text }) => `${index}${text}`)).toEqual([
      "0aHello world",
      "1aHello world",
      "2bHello world",
      "3bHello world",
      "4cHello world",
      "5cHello world",
    ]);
    expect(answer.usage).toMatchObject({ prompt_tokens: 15, completion_tokens: 12 });
  });

  test("accept more prompts than slots and queue places", async () => {
    const all = testApp({ events: PLAIN_TEXT, slots: 4, config: { models: { queue_size: 0 } } });
    const prompt = Array.from({ length: 50 }, (_, index) => `prompt ${index}`);
    const answer = await clientOf(all).completions.create({ model: "fake", prompt });
    expect(answer.choices).toHaveLength(50);
  });

  test("stream the echo first and [DONE] last", async () => {
    const answer = await testApp({ events: PLAIN_TEXT }).post("/v1/completions", {
      prompt: "Once",
      echo: true,
      stream: true,
      stream_options: { include_usage: true },
    });
    const events = await sseEvents(answer);
    expect(events.at(-1)?.data).toBe("[DONE]");
    const chunks = events.slice(0, -1).map(({ data }): unknown => JSON.parse(data));
    expect(chunks).toMatchObject([
      { choices: [{ text: "Once", finish_reason: null }], usage: null },
      { choices: [{ text: "Hello" }] },
      { choices: [{ text: " world" }] },
      { choices: [{ text: "", finish_reason: "stop" }] },
      { choices: [], usage: { total_tokens: 7 } },
    ]);
  });

  test("fill in the middle in the order of the model's training", async () => {
    const infill = { prefix: "<PRE>", suffix: "<SUF>", middle: "<MID>" };
    const all = testApp({ events: PLAIN_TEXT, model: fakeModel({ gguf: { ...fakeModel().gguf, infill } }) });
    const body = { model: "fake", prompt: "def one():", suffix: "print(one())" };
    const answer = await clientOf(all).completions.create({ ...body, echo: true });
    expect(all.lastRequest().input).toEqual({
      kind: "prompt",
      prompt: "<PRE>def one():<SUF>print(one())<MID>",
    });
    expect(answer.choices[0]?.text).toBe("def one():Hello world");
    await clientOf(all).completions.create({ ...body, suffix: "" });
    expect(all.lastRequest().input).toEqual({ kind: "prompt", prompt: "def one():" });
  });

  test("report log probabilities with offsets, streamed or not", async () => {
    const expected = {
      tokens: ["Hello", " world"],
      token_logprobs: [-0.5, -0.5],
      top_logprobs: [{ x: -1 }, { x: -1 }],
      text_offset: [0, 5],
    };
    const client = clientOf(testApp({ events: WITH_LOGPROBS }));
    const complete = await client.completions.create({ model: "fake", prompt: "", logprobs: 1 });
    expect(complete.choices[0]?.logprobs).toEqual(expected);
    const offsets: number[] = [];
    for await (const chunk of await client.completions.create({
      model: "fake",
      prompt: "",
      logprobs: 1,
      stream: true,
    })) {
      offsets.push(...(chunk.choices[0]?.logprobs?.text_offset ?? []));
    }
    expect(offsets).toEqual(expected.text_offset);
  });

  test.for<[string, object, string]>([
    ["a suffix, with a model that cannot fill in the middle", { prompt: "", suffix: "the end" }, "suffix"],
    ["the best of several in a stream", { prompt: "", best_of: 2, stream: true }, "best_of"],
    ["more completions than the best are chosen of", { prompt: "", n: 3, best_of: 2 }, "best_of"],
    ["no tokens and no echo", { prompt: "", max_tokens: 0 }, "max_tokens"],
    ["scores of a prompt with a suffix", { prompt: "", suffix: "a", echo: true, logprobs: 1 }, "suffix"],
    ["two formats", { prompt: "", grammar: "root ::= [a]", json_schema: {} }, "grammar"],
    ["no prompt", {}, "prompt"],
  ])("reject %s", async ([, body, param]) => {
    const answer = await testApp().post("/v1/completions", body);
    expect(answer.status).toBe(400);
    expect(await answer.json()).toMatchObject({ error: { param } });
  });
});

describe("embeddings", () => {
  test("are returned as base64 to the official client, which requests it by default", async () => {
    const answer = await clientOf(testApp()).embeddings.create({ model: "fake", input: ["abc", "de"] });
    expect(answer.data.map(({ embedding }) => embedding)).toEqual([
      [3, 0],
      [2, 0],
    ]);
    expect(answer).toMatchObject({
      object: "list",
      model: "fake",
      usage: { prompt_tokens: 5, total_tokens: 5 },
    });
  });

  test("accept token IDs of one text and of several", async () => {
    const all = testApp();
    const one = await clientOf(all).embeddings.create({ model: "fake", input: bytes("abc") });
    expect(one.data.map(({ embedding }) => embedding)).toEqual([[3, 0]]);
    const input = [bytes("abc"), bytes("de")];
    const several = await clientOf(all).embeddings.create({ model: "fake", input });
    expect(several.data.map(({ embedding }) => embedding)).toEqual([
      [3, 0],
      [2, 0],
    ]);
  });

  test("are returned as numbers by default", async () => {
    const answer = await testApp().post("/v1/embeddings", { model: "fake", input: "abc" });
    expect(await answer.json()).toMatchObject({
      data: [{ object: "embedding", index: 0, embedding: [3, 0] }],
    });
  });

  test("are little-endian 32-bit floats in base64", async () => {
    const answer = await testApp().post("/v1/embeddings", { input: "abc", encoding_format: "base64" });
    const { data } = await answer.json();
    expect(Buffer.from(data[0].embedding, "base64").toString("hex")).toBe("0000404000000000");
  });

  test("are truncated to the requested dimensions and normalized", async () => {
    const answer = await testApp().post("/v1/embeddings", { input: "abc", dimensions: 1 });
    expect(await answer.json()).toMatchObject({ data: [{ embedding: [1] }] });
  });

  test.for<[string, object, string]>([
    ["an empty text", { input: "" }, "input"],
    ["no text", { input: [] }, "input"],
    ["an empty text among others", { input: ["a", ""] }, "input[1]"],
    ["tokens that no text gives", { input: [0xf0, 0x9f] }, "input"],
    ["such tokens among others", { input: [[97], [0xf0, 0x9f]] }, "input[1]"],
    ["more dimensions than there are", { input: "a", dimensions: 3 }, "dimensions"],
    ["another format", { input: "a", encoding_format: "int8" }, "encoding_format"],
  ])("reject %s", async ([, body, param]) => {
    const answer = await testApp().post("/v1/embeddings", body);
    expect(answer.status).toBe(400);
    expect(await answer.json()).toMatchObject({ error: { param } });
  });
});

describe("rerank", () => {
  const { gguf } = fakeModel();
  const model = fakeModel({ gguf: { ...gguf, purpose: "rerank" } });

  test.each(["/v1/rerank", "/v2/rerank"])("at %s sorts the documents by scores from 0 to 1", async (path) => {
    const answer = await testApp({ model }).post(path, {
      model: "fake",
      query: "cats",
      documents: ["a", { text: "ccc" }, "bb"],
      top_n: 2,
      return_documents: true,
    });
    expect(await answer.json()).toEqual({
      id: expect.stringMatching(/^rerank-/),
      object: "list",
      model: "fake",
      results: [
        { index: 1, relevance_score: expect.closeTo(0.9526, 3), document: { text: "ccc" } },
        { index: 2, relevance_score: expect.closeTo(0.8808, 3), document: { text: "bb" } },
      ],
      usage: { prompt_tokens: 6, total_tokens: 6 },
      meta: { tokens: { input_tokens: 6, output_tokens: 0 } },
    });
  });

  test("rejects rank_fields", async () => {
    const body = { query: "cats", documents: [{ text: "a" }], rank_fields: ["title"] };
    const answer = await testApp({ model }).post("/v1/rerank", body);
    expect(answer.status).toBe(400);
    expect(await answer.json()).toMatchObject({ error: { param: "rank_fields" } });
  });

  test("requires a reranker model", async () => {
    const answer = await testApp().post("/v1/rerank", { query: "cats", documents: ["a"] });
    expect(answer.status).toBe(400);
    const message = expect.stringContaining('"daybreak pull jina-reranker:tiny"');
    expect(await answer.json()).toMatchObject({
      error: { code: "unsupported_feature", param: "model", message },
    });
  });
});

describe("models", () => {
  test("are listed and shown", async () => {
    const client = clientOf(testApp());
    const { data } = await client.models.list();
    expect(data).toEqual([
      {
        id: "fake",
        object: "model",
        created: Date.UTC(2026, 0, 2) / 1000,
        owned_by: "daybreak",
        // Names of the context size that clients of several servers look for.
        context_length: 2048,
        max_context_length: 2048,
        max_model_len: 2048,
        meta: { n_ctx_train: 2048, n_vocab: 100, n_embd: 64, n_params: 1_000_000, size: 1_100_000 },
      },
    ]);
    expect(await client.models.retrieve("fake")).toEqual(data[0]);
    await expect(client.models.retrieve("no/such:model")).rejects.toThrow(NotFoundError);
  });

  test("are also listed once per adapter, under the name that selects it", async () => {
    const adapters = [{ path: "/a.gguf", scale: 1, name: "poet" }];
    const all = testApp({ model: fakeModel({ adapters }) });
    const client = clientOf(all);
    const { data } = await client.models.list();
    expect(data).toMatchObject([{ id: "fake" }, { id: "fake:poet", parent: "fake" }]);
    expect(data[0]).not.toHaveProperty("parent");
    expect(await client.models.retrieve("fake:poet")).toEqual(data[1]);
  });
});
