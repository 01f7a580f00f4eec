import { createAnthropic } from "@ai-sdk/anthropic";
import { createOpenAI } from "@ai-sdk/openai";
import { createOpenAICompatible } from "@ai-sdk/openai-compatible";
import {
  APICallError,
  embed,
  embedMany,
  generateObject,
  generateText,
  Output,
  stepCountIs,
  streamObject,
  streamText,
  tool,
  type LanguageModel,
} from "ai";
import { beforeAll, describe, expect, test } from "vitest";
import { z } from "zod";
import { activeRequests } from "../support/active-requests.ts";
import {
  AMPLE_TOKENS,
  GREEDY,
  QUESTION_FOR_WEATHER,
  QUESTION_TO_THINK_ABOUT,
} from "../support/certain-requests.ts";
import { likeness } from "../support/likeness.ts";
import { sharedDaemon } from "../support/shared-daemon.ts";
import type { TestDaemon } from "../support/start-daemon.ts";

const name = "daybreak-mini";
const prompt = "Hello";
const once = { prompt, maxRetries: 0 };

const COLOUR = z.object({ colour: z.enum(["red", "blue"]), sure: z.boolean() });
/** Request with an endless answer. */
const ENDLESS = z.object({ list: z.array(z.number().int().min(0).max(9)).min(1000) });

let daemon: TestDaemon;

beforeAll(async () => {
  daemon = await sharedDaemon();
});

/** Makes the SDK send the temperature, which it omits for reasoning models. */
const greedily: typeof fetch = (url, init) => {
  if (typeof init?.body !== "string") return fetch(url, init);
  return fetch(url, { ...init, body: JSON.stringify({ ...JSON.parse(init.body), ...GREEDY }) });
};

const openai = () => createOpenAI({ baseURL: `${daemon.url}/v1`, apiKey: "any", fetch: greedily });
const compatible = () =>
  createOpenAICompatible({
    name: "daybreak",
    fetch: greedily,
    baseURL: `${daemon.url}/v1`,
    includeUsage: true,
    supportsStructuredOutputs: true,
  });
const anthropic = () => createAnthropic({ baseURL: `${daemon.url}/v1`, apiKey: "any", fetch: greedily });

const PROVIDERS: { api: string; languageModel: (id: string) => LanguageModel }[] = [
  { api: "openai-compatible", languageModel: (id) => compatible()(id) },
  { api: "openai, chat", languageModel: (id) => openai().chat(id) },
  { api: "openai, responses", languageModel: (id) => openai().responses(id) },
  { api: "anthropic", languageModel: (id) => anthropic()(id) },
];

describe.for(PROVIDERS)("the Vercel AI SDK through $api", ({ languageModel }) => {
  test("generates text", async () => {
    const answer = await generateText({ ...once, model: languageModel(name), maxOutputTokens: 8 });
    expect(answer.warnings).toEqual([]);
    expect(["stop", "length"]).toContain(answer.finishReason);
    expect(answer.usage.inputTokens).toBeGreaterThan(1);
    expect(answer.usage.outputTokens).toBeLessThanOrEqual(8);
  });

  test("streams the same text", async () => {
    const request = { ...once, model: languageModel(name), maxOutputTokens: 8 };
    const whole = await generateText(request);
    const streamed = streamText(request);
    let text = "";
    for await (const piece of streamed.textStream) text += piece;
    expect(text).toBe(whole.text);
    expect(await streamed.finishReason).toBe(whole.finishReason);
    expect((await streamed.usage).totalTokens).toBe(whole.usage.totalTokens);
  });

  test.for(["whole", "streamed"] as const)("calls a tool and continues with its result, %s", async (how) => {
    const cities: string[] = [];
    const request = {
      prompt: QUESTION_FOR_WEATHER,
      maxRetries: 0,
      model: languageModel(name),
      maxOutputTokens: AMPLE_TOKENS,
      tools: {
        get_weather: tool({
          description: "The weather in a city.",
          inputSchema: z.object({ city: z.enum(["Rome", "Oslo"]) }),
          execute: ({ city }) => {
            cities.push(city);
            return { weather: "sunny" };
          },
        }),
      },
      prepareStep: ({ stepNumber }: { stepNumber: number }) => ({
        toolChoice: stepNumber === 0 ? ("required" as const) : ("none" as const),
      }),
      stopWhen: stepCountIs(2),
    };
    const steps = how === "whole" ? (await generateText(request)).steps : await streamText(request).steps;
    expect(steps).toHaveLength(2);
    const [first, second] = steps;
    expect(first?.finishReason).toBe("tool-calls");
    expect(first?.toolCalls).toMatchObject([{ toolName: "get_weather", input: { city: cities[0] } }]);
    expect(cities).toHaveLength(1);
    expect(second?.toolCalls).toEqual([]);
    const alone = await generateText({
      ...once,
      prompt: QUESTION_FOR_WEATHER,
      model: languageModel(name),
      maxOutputTokens: 1,
    });
    expect(second?.usage.inputTokens).toBeGreaterThan(alone.usage.inputTokens!);
  });

  test("follows a zod schema, also streamed and as the output of a text", async () => {
    const request = { ...once, model: languageModel(name), maxOutputTokens: AMPLE_TOKENS };
    const whole = await generateObject({ ...request, schema: COLOUR });
    expect(COLOUR.parse(whole.object)).toBeTruthy();
    const streamed = streamObject({ ...request, schema: COLOUR });
    let last: unknown;
    for await (const partial of streamed.partialObjectStream) last = partial;
    expect(COLOUR.parse(await streamed.object)).toEqual(last);
    const { output } = await generateText({ ...request, output: Output.object({ schema: COLOUR }) });
    expect(COLOUR.parse(output)).toBeTruthy();
  });

  test("ends a generation that is aborted", async () => {
    const abort = new AbortController();
    const parts: string[] = [];
    const { fullStream } = streamText({
      ...once,
      model: languageModel(name),
      maxOutputTokens: 1500,
      output: Output.object({ schema: ENDLESS }),
      abortSignal: abort.signal,
    });
    for await (const { type } of fullStream) {
      parts.push(type);
      if (type === "text-delta") abort.abort();
    }
    expect(parts.at(-1)).toBe("abort");
    await expect.poll(() => activeRequests(daemon)).toBe(0);
  });

  test("raises its error with the status, the message and whether to try again", async () => {
    const unknown = generateText({ ...once, model: languageModel("no-such-model") });
    await expect(unknown).rejects.toThrow(APICallError);
    await expect(unknown).rejects.toMatchObject({ statusCode: 404, isRetryable: false });
    await expect(unknown).rejects.toThrow("no-such-model");
    const long = generateText({ ...once, model: languageModel(name), prompt: "word ".repeat(4000) });
    await expect(long).rejects.toMatchObject({ statusCode: 400, isRetryable: false });
  });
});

describe("the Vercel AI SDK's embeddings", () => {
  test.for([
    { api: "openai-compatible", embeddingModel: () => compatible().embeddingModel(name) },
    { api: "openai", embeddingModel: () => openai().embedding(name) },
  ])("through $api", async ({ embeddingModel }) => {
    const model = embeddingModel();
    const { embedding, usage } = await embed({ model, value: "The sun rises.", maxRetries: 0 });
    expect(Math.hypot(...embedding)).toBeCloseTo(1, 3);
    expect(usage.tokens).toBeGreaterThan(1);
    const { embeddings } = await embedMany({ model, values: ["The sun rises.", "b", "c"], maxRetries: 0 });
    expect(embeddings).toHaveLength(3);
    expect(likeness(embeddings[0]!, embedding)).toBeCloseTo(1, 3);
  });
});

describe("reasoning in the Vercel AI SDK", () => {
  test.for([
    {
      api: "openai-compatible",
      languageModel: () => compatible()(name),
      providerOptions: { daybreak: { reasoningEffort: "low" } },
    },
    {
      api: "openai, responses",
      languageModel: () => openai().responses(name),
      providerOptions: { openai: { reasoningEffort: "low", forceReasoning: true } },
    },
    {
      api: "anthropic",
      languageModel: () => anthropic()(name),
      providerOptions: { anthropic: { thinking: { type: "enabled", budgetTokens: 1024 } } },
    },
  ])(
    "through $api is returned and accepted in the next request",
    async ({ languageModel, providerOptions }) => {
      const question = QUESTION_TO_THINK_ABOUT;
      const request = { model: languageModel(), maxRetries: 0, maxOutputTokens: 8, providerOptions };
      const thoughtful = await generateText({ ...request, prompt: question });
      expect(thoughtful.reasoningText).toMatch(/./s);
      const again = await generateText({
        ...request,
        messages: [
          { role: "user", content: question },
          ...thoughtful.response.messages,
          { role: "user", content: "And?" },
        ],
      });
      expect(again.usage.inputTokens).toBeGreaterThan(thoughtful.usage.inputTokens!);
    },
  );
});
