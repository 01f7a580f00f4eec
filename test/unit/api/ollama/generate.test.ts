import { describe, expect, test } from "vitest";
import { generateAnswerSchema, generateLineSchema } from "../../../../src/api/ollama/ollama-generate.ts";
import { fakeModel } from "../../../support/fake-models.ts";
import { PLAIN_TEXT, randomAnswer, WITH_LOGPROBS } from "../recorded-events.ts";
import { ABLE, lines, testApp } from "../../../support/test-app.ts";
import { randomNumbers } from "../../../support/random-numbers.ts";

const PATH = "/ollama/api/generate";
const BASE = { model: "fake", prompt: "hi" };
const PNG = Buffer.from("89504e470d0a1a0a", "hex").toString("base64");

describe("an answer of /api/generate", () => {
  test("is a single object with stream false", async () => {
    const answer = await testApp({ events: PLAIN_TEXT }).post(PATH, { ...BASE, stream: false });
    expect(await answer.json()).toEqual({
      model: "fake",
      created_at: expect.any(String),
      response: "Hello world",
      done: true,
      done_reason: "stop",
      total_duration: expect.any(Number),
      load_duration: expect.any(Number),
      prompt_eval_count: 5,
      prompt_eval_cached_count: 0,
      prompt_eval_duration: 10_000_000,
      eval_count: 2,
      eval_duration: 20_000_000,
    });
  });

  test("is streamed as lines by default", async () => {
    const all = await lines(await testApp({ events: WITH_LOGPROBS }).post(PATH, { ...BASE, logprobs: true }));
    expect(all).toMatchObject([
      { response: "Hello", done: false, logprobs: [{ token: "Hello" }] },
      { response: " world", done: false },
      { response: "", done: true, done_reason: "stop", eval_count: 2 },
    ]);
  });

  test("adds up to the same text and thinking, streamed or not", async () => {
    const random = randomNumbers(6);
    for (let round = 0; round < 40; round++) {
      const events = randomAnswer(random);
      const complete = await testApp({ events }).post(PATH, { ...BASE, stream: false });
      const streamed = generateLineSchema
        .array()
        .parse(await lines(await testApp({ events }).post(PATH, BASE)));
      const { response, thinking = "" } = generateAnswerSchema.parse(await complete.json());
      expect(streamed.map((line) => line.response).join("")).toBe(response);
      expect(streamed.map((line) => line.thinking ?? "").join("")).toBe(thinking);
      expect(streamed.filter(({ done }) => done)).toHaveLength(1);
    }
  });

  test("separates thinking from the text", async () => {
    const events = [{ type: "reasoning-delta", text: "Well." } as const, ...PLAIN_TEXT];
    const complete = await testApp({ events }).post(PATH, { ...BASE, think: true, stream: false });
    expect(await complete.json()).toMatchObject({ thinking: "Well.", response: "Hello world" });
    const [first] = await lines(await testApp({ events }).post(PATH, { ...BASE, think: true }));
    expect(first).toMatchObject({ thinking: "Well.", response: "", done: false });
  });
});

describe("a generate request", () => {
  test("goes through the chat template, with system prompt and images", async () => {
    const all = testApp({ events: PLAIN_TEXT });
    await all.post(PATH, { ...BASE, system: "Be short.", images: [PNG], think: false });
    expect(all.lastRequest().input).toMatchObject({
      kind: "chat",
      messages: [
        { role: "system", content: [{ text: "Be short." }] },
        { role: "user", content: [{ type: "image" }, { text: "hi" }] },
      ],
      thinking: false,
    });
  });

  test("sends the prompt unchanged with raw", async () => {
    const all = testApp({ events: PLAIN_TEXT });
    await all.post(PATH, { ...BASE, prompt: "[INST] hi", raw: true });
    expect(all.lastRequest().input).toEqual({ kind: "prompt", prompt: "[INST] hi" });
  });

  test("requests the text before its suffix", async () => {
    const infill = { prefix: "<PRE>", suffix: "<SUF>", middle: "<MID>" };
    const model = fakeModel({ gguf: { ...fakeModel().gguf, infill } });
    const all = testApp({ events: PLAIN_TEXT, model });
    await all.post(PATH, { ...BASE, prompt: "one(", suffix: ")" });
    expect(all.lastRequest().input).toEqual({ kind: "prompt", prompt: "<PRE>one(<SUF>)<MID>" });
  });

  test("applies its template, with its system prompt or the model's", async () => {
    const model = fakeModel({ settings: { ...fakeModel().settings, system: "Be kind." } });
    const all = testApp({ events: PLAIN_TEXT, model });
    const template = "S: {{ .System }} Q: {{ .Prompt }} A: {{ .Response }}<end>";
    await all.post(PATH, { ...BASE, prompt: "Why?", template });
    expect(all.lastRequest().input).toEqual({ kind: "prompt", prompt: "S: Be kind. Q: Why? A: " });
    await all.post(PATH, { ...BASE, prompt: "Why?", template, system: "Be brief." });
    expect(all.lastRequest().input).toEqual({ kind: "prompt", prompt: "S: Be brief. Q: Why? A: " });
  });

  test.for([
    [{ raw: true, system: "no" }, /^raw: cannot be combined with system/],
    [{ suffix: "end", images: [PNG] }, /^suffix: cannot be combined with system or images/],
    [{ suffix: "end" }, /^model does not support insert: "fake" cannot fill in the middle/],
    [{ template: "{{ .Prompt }}", raw: true }, /^raw: cannot be combined with a template/],
    [{ template: "{{ .Prompt }}", images: [PNG] }, /^template: cannot be combined with images/],
    [{ template: "{{ .Unknown }}{{ .Prompt }}" }, /^template: .*\.Unknown is not known/],
    [{ images: ["not base64!"] }, /images\.0/],
  ] as const)("is rejected with %j", async ([more, message]) => {
    const answer = await testApp({ events: PLAIN_TEXT }).post(PATH, { ...BASE, ...more });
    expect(answer.status).toBe(400);
    expect(await answer.json()).toEqual({ error: expect.stringMatching(message) });
  });

  test("accepts empty values of all fields", async () => {
    const more = { suffix: "", template: "", system: "", context: [1, 2], format: "", images: null };
    const answer = await testApp({ events: PLAIN_TEXT }).post(PATH, { ...BASE, ...more });
    expect(answer.status).toBe(200);
  });
});

describe("options", () => {
  test("are passed to the engine, and unsupported ones are ignored", async () => {
    const all = testApp({ events: PLAIN_TEXT });
    await all.post(PATH, {
      ...BASE,
      options: {
        num_predict: 7,
        temperature: 0,
        top_k: -1,
        top_p: 0.5,
        min_p: 0.1,
        typical_p: 0.9,
        seed: 3,
        stop: ["END", ""],
        repeat_penalty: 1.1,
        repeat_last_n: 64,
        presence_penalty: 0.1,
        frequency_penalty: 0.2,
        mirostat: 2,
        mirostat_tau: 4,
        mirostat_eta: 0.2,
        num_thread: "many",
        unheard_of: {},
      },
    });
    expect(all.lastRequest()).toMatchObject({
      maxTokens: 7,
      stop: ["END"],
      sampling: {
        temperature: 0,
        topK: 0,
        topP: 0.5,
        minP: 0.1,
        typicalP: 0.9,
        seed: 3,
        repeatPenalty: 1.1,
        repeatLastN: 64,
        presencePenalty: 0.1,
        frequencyPenalty: 0.2,
        mirostat: 2,
        mirostatTau: 4,
        mirostatEta: 0.2,
      },
    });
  });

  const limited = fakeModel({
    ...ABLE,
    settings: { ...ABLE.settings, maxTokens: 9 },
  });
  test.for([
    [undefined, 9],
    [5, 5],
    [-1, ABLE.contextSize],
    [-2, ABLE.contextSize],
    [0, ABLE.contextSize],
  ] as const)(
    "num_predict %s limits the answer to %s although the model's limit is 9",
    async ([limit, expected]) => {
      const all = testApp({ events: PLAIN_TEXT, model: limited });
      await all.post(PATH, { ...BASE, options: { num_predict: limit } });
      expect(all.lastRequest().maxTokens).toBe(expected);
    },
  );

  test("the answer may fill the context without num_predict", async () => {
    const all = testApp({ events: PLAIN_TEXT });
    await all.post(PATH, BASE);
    expect(all.lastRequest().maxTokens).toBeUndefined();
  });
});
