import Anthropic from "@anthropic-ai/sdk";
import OpenAI from "openai";
import { beforeAll, describe, expect, test } from "vitest";
import { QUESTION_TO_THINK_ABOUT } from "../support/certain-requests.ts";
import { likeness } from "../support/likeness.ts";
import { sharedDaemon } from "../support/shared-daemon.ts";
import type { TestDaemon } from "../support/start-daemon.ts";

const model = "daybreak-mini";
const TEXT = "Hello world, grüße 👩‍👩‍👧 𓂀";

let daemon: TestDaemon;
let openai: OpenAI;
let anthropic: Anthropic;

beforeAll(async () => {
  daemon = await sharedDaemon();
  openai = new OpenAI({ baseURL: `${daemon.url}/v1`, apiKey: "any", maxRetries: 0 });
  anthropic = new Anthropic({ baseURL: daemon.url, apiKey: "any", maxRetries: 0 });
});

async function post(path: string, body: object): Promise<Record<string, unknown>> {
  const headers = { "content-type": "application/json" };
  const answer = await fetch(`${daemon.url}${path}`, { method: "POST", headers, body: JSON.stringify(body) });
  const json: unknown = await answer.json();
  return Object(json);
}

async function tokenize(body: object): Promise<number[]> {
  const { tokens } = await post("/tokenize", body);
  if (!Array.isArray(tokens)) throw new Error("no tokens");
  return tokens;
}

describe("/tokenize and /detokenize", () => {
  test("turn a text into ids and back", async () => {
    const tokens = await tokenize({ content: TEXT });
    expect(tokens.length).toBeGreaterThan(5);
    const { content } = await post("/detokenize", { tokens });
    expect(String(content).trim()).toBe(TEXT);
    expect(await tokenize({ content: "" })).toEqual([]);
    expect(await post("/detokenize", { tokens: [] })).toEqual({ content: "" });
  });

  test("return the text or the bytes of each token", async () => {
    const { tokens } = await post("/tokenize", { model, content: "a𓂀", with_pieces: true });
    const pieces = (Array.isArray(tokens) ? tokens : []).map((token) => Object(token)["piece"]);
    expect(pieces.slice(-4)).toEqual([[0xf0], [0x93], [0x82], [0x80]]);
    expect(pieces.slice(0, -4).join("").trim()).toBe("a");
  });

  test("refuse ids that the model does not have, and unknown models", async () => {
    const wrong = await post("/detokenize", { tokens: [1, 99_999_999] });
    expect(wrong).toMatchObject({ error: { type: "invalid_request", code: "invalid_parameter" } });
    expect(await post("/detokenize", { tokens: [-1] })).toHaveProperty("error");
    expect(await post("/tokenize", { model: "none", content: "a" })).toMatchObject({
      error: { code: "model_not_found" },
    });
  });
});

describe("token ids as a prompt", () => {
  test("give the same answer as their text, for each prompt of a list", async () => {
    const settings = { model, max_tokens: 4, temperature: 0, seed: 1 };
    // Prompts with certain answers, since concurrent requests round differently.
    const texts = ["Hello", QUESTION_TO_THINK_ABOUT].map(
      (question) => `<|im_start|>user\n${question}<|im_end|>\n<|im_start|>assistant\n`,
    );
    const ids = await Promise.all(texts.map((content) => tokenize({ content, add_special: true })));
    const byText = await openai.completions.create({ ...settings, prompt: texts });
    const byIds = await openai.completions.create({ ...settings, prompt: ids });
    expect(byIds.choices.map(({ text }) => text)).toEqual(byText.choices.map(({ text }) => text));
    expect(byIds.usage?.prompt_tokens).toBe(byText.usage?.prompt_tokens);
    expect(byIds.usage?.prompt_tokens).toBe(ids.flat().length);
  });

  test("are refused if they are no valid text", async () => {
    const [first] = await tokenize({ content: "𓂀" });
    const half = (await tokenize({ content: "𓂀" })).slice(0, -2);
    expect(first).toBeTypeOf("number");
    for (const prompt of [half, [99_999_999]]) {
      await expect(openai.completions.create({ model, prompt })).rejects.toMatchObject({
        status: 400,
        param: "prompt",
      });
    }
  });
});

describe("token ids to embed", () => {
  test.each([model, "daybreak-mini-embed"])("give the same vectors as their texts with %s", async (name) => {
    await post("/api/models/load", { alias: name });
    const texts = ["The cat sat on the mat.", "Rain is likely."];
    const ids = await Promise.all(
      texts.map((content) => tokenize({ model: name, content, add_special: true })),
    );
    const byText = await openai.embeddings.create({ model: name, input: texts });
    const byIds = await openai.embeddings.create({ model: name, input: ids });
    const single = await openai.embeddings.create({ model: name, input: ids[0]! });
    expect(byIds.usage).toEqual(byText.usage);
    for (const [index, { embedding }] of byText.data.entries()) {
      expect(likeness(embedding, byIds.data[index]!.embedding)).toBeCloseTo(1, 3);
    }
    expect(likeness(single.data[0]!.embedding, byText.data[0]!.embedding)).toBeCloseTo(1, 3);
    expect(likeness(byIds.data[0]!.embedding, byText.data[1]!.embedding)).toBeLessThan(0.99);
    await expect(openai.embeddings.create({ model: name, input: [[99_999_999]] })).rejects.toMatchObject({
      status: 400,
      param: "input",
    });
  });
});

describe("a bias by token id", () => {
  test("makes a token certain, or impossible", async () => {
    const prompt = "<|im_start|>user\nHello<|im_end|>\n<|im_start|>assistant\n";
    const settings = { model, max_tokens: 4, temperature: 0, prompt };
    const [token] = (await tokenize({ content: "Daybreak" })).slice(-1);
    const forced = await openai.completions.create({ ...settings, logit_bias: { [token!]: 100 } });
    const { content: written } = await post("/detokenize", { tokens: [token, token, token, token] });
    expect(forced.choices[0]?.text.trim()).toBe(String(written).trim());
    const { choices } = await openai.completions.create({ ...settings, logprobs: 1 });
    const likeliest = choices[0]?.logprobs?.tokens?.[0] ?? "";
    // The id of the same text at the same position.
    const before = await tokenize({ content: prompt });
    const banned = (await tokenize({ content: prompt + likeliest }))[before.length];
    const without = await openai.completions.create({
      ...settings,
      logprobs: 1,
      logit_bias: { [banned!]: -100 },
    });
    expect(likeliest).not.toBe("");
    expect(without.choices[0]?.logprobs?.tokens?.[0]).not.toBe(likeliest);
  });

  test("of a token that the model does not have is refused", async () => {
    const refused = openai.completions.create({ model, prompt: "a", logit_bias: { 99999999: 1 } });
    await expect(refused).rejects.toMatchObject({ status: 400, param: "logit_bias.99999999" });
  });
});

test("count_tokens counts a message with system prompt and tools", async () => {
  const tool = { name: "get_weather", input_schema: { type: "object" as const, properties: {} } };
  const messages = [{ role: "user" as const, content: "Hello" }];
  const counts: number[] = [];
  for (const extra of [{}, { system: "Be brief." }, { system: "Be brief.", tools: [tool] }]) {
    const { input_tokens: counted } = await anthropic.messages.countTokens({ model, messages, ...extra });
    const { usage } = await anthropic.messages.create({ model, max_tokens: 1, messages, ...extra });
    expect(counted).toBe(usage.input_tokens + (usage.cache_read_input_tokens ?? 0));
    counts.push(counted);
  }
  expect(counts).toEqual(counts.toSorted((a, b) => a - b));
  expect(new Set(counts).size).toBe(3);
});
