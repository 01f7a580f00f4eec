import OpenAI, { BadRequestError, NotFoundError } from "openai";
import { zodResponseFormat } from "openai/helpers/zod";
import { beforeAll, describe, expect, test } from "vitest";
import { z } from "zod";
import { activeRequests } from "../support/active-requests.ts";
import {
  AMPLE_TOKENS,
  ENDLESS_OBJECT,
  GREEDY,
  QUESTION_FOR_WEATHER,
  QUESTION_TO_THINK_ABOUT,
} from "../support/certain-requests.ts";
import { likeness } from "../support/likeness.ts";
import { postJson } from "../support/post-json.ts";
import { sharedDaemon } from "../support/shared-daemon.ts";
import type { TestDaemon } from "../support/start-daemon.ts";

const model = "daybreak-mini";
const messages = [{ role: "user" as const, content: "Hello" }];
const TOOL = {
  type: "function" as const,
  function: {
    name: "get_weather",
    parameters: {
      type: "object",
      properties: { city: { enum: ["Rome", "Oslo"] } },
      required: ["city"],
      additionalProperties: false,
    },
  },
};

let daemon: TestDaemon;
let client: OpenAI;

beforeAll(async () => {
  daemon = await sharedDaemon();
  client = new OpenAI({ baseURL: `${daemon.url}/v1`, apiKey: "any", maxRetries: 0 });
});

describe("chat completions with the official client", () => {
  test("give the same answer streamed", async () => {
    const body = { model, messages, max_tokens: 12, ...GREEDY };
    const whole = await client.chat.completions.create(body);
    const stream = client.chat.completions.stream({ ...body, stream_options: { include_usage: true } });
    const streamed = await stream.finalChatCompletion();
    expect(whole.choices[0]?.message.content).toMatch(/./s);
    expect(streamed.choices[0]?.message.content).toBe(whole.choices[0]?.message.content);
    expect(whole).toMatchObject({ model, object: "chat.completion" });
    expect(streamed.choices[0]?.finish_reason).toBe(whole.choices[0]?.finish_reason);
    expect(whole.usage?.completion_tokens).toBeLessThanOrEqual(12);
    expect(streamed.usage?.total_tokens).toBe(whole.usage?.total_tokens);
  });

  test("stream the progress of prefill when requested", async () => {
    const extraFields = { return_progress: true };
    const stream = await client.chat.completions.create({
      model,
      messages,
      max_tokens: 1,
      stream: true,
      ...extraFields,
    });
    const progress: unknown[] = [];
    for await (const chunk of stream) {
      if ("prompt_progress" in chunk) progress.push(chunk.prompt_progress);
    }
    const { total, processed } = z
      .object({ total: z.int().min(1), processed: z.int() })
      .parse(progress.at(-1));
    expect(processed).toBe(total);
  });

  test("return several choices", async () => {
    // Uniform over 40 candidates: with the usual sampling the choices could be equal.
    const anyOfForty = { temperature: 5, top_p: 1, min_p: 0 };
    const { choices } = await client.chat.completions.create({
      model,
      messages,
      max_tokens: 16,
      n: 3,
      seed: 1,
      ...anyOfForty,
    });
    expect(choices.map(({ index }) => index).toSorted((a, b) => a - b)).toEqual([0, 1, 2]);
    expect(new Set(choices.map(({ message }) => message.content)).size).toBeGreaterThan(1);
  });

  test("call a required tool, then continue with its result", async () => {
    const question = [{ role: "user" as const, content: QUESTION_FOR_WEATHER }];
    const stream = client.chat.completions.stream({
      model,
      messages: question,
      tools: [TOOL],
      tool_choice: "required",
      max_tokens: AMPLE_TOKENS,
      ...GREEDY,
    });
    const [choice] = (await stream.finalChatCompletion()).choices;
    expect(choice?.finish_reason).toBe("tool_calls");
    const [call] = choice?.message.tool_calls ?? [];
    expect(call?.function.name).toBe("get_weather");
    expect(JSON.parse(call?.function.arguments ?? "")).toEqual({
      city: expect.stringMatching(/^(Rome|Oslo)$/),
    });
    const answer = await client.chat.completions.create({
      model,
      messages: [...question, choice!.message, { role: "tool", tool_call_id: call!.id, content: "Sunny." }],
      tools: [TOOL],
      max_tokens: 4,
    });
    expect(answer.usage?.completion_tokens).toBeLessThanOrEqual(4);
  });

  test("follow a zod schema", async () => {
    const schema = z.object({ colour: z.enum(["red", "blue"]), sure: z.boolean() });
    const answer = await client.chat.completions.parse({
      model,
      messages,
      max_tokens: AMPLE_TOKENS,
      ...GREEDY,
      response_format: zodResponseFormat(schema, "answer"),
    });
    expect(schema.parse(answer.choices[0]?.message.parsed)).toBeTruthy();
  });

  test("return reasoning when an effort is requested", async () => {
    const stream = await client.chat.completions.create({
      model,
      messages: [{ role: "user", content: QUESTION_TO_THINK_ABOUT }],
      max_tokens: 6,
      ...GREEDY,
      n: 2,
      reasoning_effort: "low",
      stream: true,
    });
    let reasoning = "";
    for await (const { choices } of stream) {
      const delta: object = choices[0]?.delta ?? {};
      if ("reasoning_content" in delta) reasoning += String(delta.reasoning_content);
    }
    expect(reasoning).not.toBe("");
  });

  test("report a log-probability for each token", async () => {
    const answer = await client.chat.completions.create({
      model,
      messages,
      max_tokens: 5,
      n: 3,
      ...GREEDY,
      logprobs: true,
      top_logprobs: 2,
    });
    const content = answer.choices.flatMap(({ logprobs }) => logprobs?.content ?? []);
    expect(content.length).toBeGreaterThan(0);
    expect(content.every(({ logprob, top_logprobs: top }) => logprob <= 0 && top.length === 2)).toBe(true);
  });

  test("report log-probabilities of the text if tools are offered", async () => {
    const tool = { type: "function", function: { name: "get_weather" } } as const;
    const answer = await client.chat.completions.create({
      model,
      messages: [{ role: "user", content: "What is the weather in Paris?" }],
      tools: [tool],
      tool_choice: "required",
      max_tokens: 60,
      ...GREEDY,
      logprobs: true,
    });
    const [choice] = answer.choices;
    expect(choice?.message.tool_calls).toHaveLength(1);
    expect(choice?.logprobs?.content?.map(({ token }) => token).join("") ?? "").not.toContain("get");
  });

  test("end when the client disconnects", async () => {
    const stream = await client.chat.completions.create({
      model,
      messages,
      response_format: { type: "json_schema", json_schema: { name: "long", schema: ENDLESS_OBJECT } },
      stream: true,
    });
    await stream[Symbol.asyncIterator]().next();
    stream.controller.abort();
    await expect.poll(() => activeRequests(daemon)).toBe(0);
  });

  test("are stopped by the repetition guard of the request", async () => {
    const asked = {
      model,
      messages,
      max_tokens: 1500,
      // Forces the same token.
      logit_bias: { "300": 100 },
      repetition_guard: true,
    };
    const { choices, usage } = await client.chat.completions.create(asked);
    expect(choices[0]).toMatchObject({ finish_reason: "length", limited_by: "repetition" });
    expect(usage?.completion_tokens).toBe(256);
    expect(await activeRequests(daemon)).toBe(0);
  });

  test("raise the client's error classes", async () => {
    await expect(client.chat.completions.create({ model: "no-such-model", messages })).rejects.toThrow(
      NotFoundError,
    );
    await expect(client.chat.completions.create({ model, messages: [] })).rejects.toThrow(BadRequestError);
    await expect(
      client.chat.completions.create({ model, messages: [{ role: "user", content: "word ".repeat(4000) }] }),
    ).rejects.toMatchObject({
      status: 400,
      code: "context_length_exceeded",
      // Agents recognize the error by this text.
      message: expect.stringMatching(
        /prompt has \d+ tokens and exceeds the context window: the maximum context length is \d+ tokens \(all that the model was trained for\)\..*use a model that was trained for more/,
      ),
    });
  });
});

describe("text completions with the official client", () => {
  test("score prompts of text and of tokens, as for evaluation harnesses", async () => {
    const request = { model, max_tokens: 1, logprobs: 1, echo: true, temperature: 0 };
    const text = "How do I load a model?";
    const { choices } = await client.completions.create({ ...request, prompt: [text, text] });
    const tokenized = await postJson(`${daemon.url}/tokenize`, { model, content: text });
    const { tokens } = z.object({ tokens: z.array(z.int()) }).parse(await tokenized.json());
    const byIds = await client.completions.create({ ...request, prompt: [tokens] });
    const [first, ...scores] = choices[0]?.logprobs?.token_logprobs ?? [];
    expect(first).toBeNull();
    expect(scores).toHaveLength(tokens.length);
    expect(scores.every((score) => score < 0)).toBe(true);
    expect(choices[0]?.logprobs?.tokens?.join("")).toBe(choices[0]?.text);
    expect(choices[1]?.logprobs?.tokens).toEqual(choices[0]?.logprobs?.tokens);
    expect(byIds.choices[0]?.logprobs?.tokens).toEqual(choices[0]?.logprobs?.tokens);
  });

  test("continue the prompt, with the same answer streamed", async () => {
    // Prompt with a long continuation.
    const prompt = "<|im_start|>user\nHello<|im_end|>\n<|im_start|>assistant\n";
    const body = { model, prompt, max_tokens: 6, ...GREEDY, echo: true };
    const whole = await client.completions.create(body);
    let streamed = "";
    for await (const { choices } of await client.completions.create({ ...body, stream: true })) {
      streamed += choices[0]?.text ?? "";
    }
    expect(whole.choices[0]?.text.startsWith(prompt)).toBe(true);
    expect(whole.choices[0]?.text.length).toBeGreaterThan(prompt.length);
    expect(streamed).toBe(whole.choices[0]?.text);
  });

  test("accept several prompts", async () => {
    const { choices } = await client.completions.create({ model, prompt: ["a", "b", "c"], max_tokens: 3 });
    expect(choices.map(({ index }) => index)).toEqual([0, 1, 2]);
  });
});

describe("embeddings with the official client", () => {
  test("have the same numbers in base64", async () => {
    const input = ["The sun rises.", "The moon."];
    const packed = await client.embeddings.create({ model, input });
    const plain = await client.embeddings.create({ model, input, encoding_format: "float" });
    expect(packed.data).toHaveLength(2);
    for (const [index, { embedding }] of packed.data.entries()) {
      expect(Math.hypot(...embedding)).toBeCloseTo(1, 3);
      expect(likeness(embedding, plain.data[index]!.embedding)).toBeCloseTo(1, 3);
    }
    expect(packed.usage.prompt_tokens).toBeGreaterThan(3);
  });

  test("can be shortened", async () => {
    const { data } = await client.embeddings.create({ model, input: "hi", dimensions: 8 });
    expect(data[0]?.embedding).toHaveLength(8);
    expect(Math.hypot(...data[0]!.embedding)).toBeCloseTo(1, 3);
  });
});

test("models are listed and shown with the official client", async () => {
  const list = await client.models.list();
  expect(list.data.map(({ id }) => id)).toContain(model);
  expect(await client.models.retrieve(model)).toMatchObject({ id: model, object: "model" });
});
