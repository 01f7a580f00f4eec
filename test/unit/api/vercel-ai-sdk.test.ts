import { createAnthropic } from "@ai-sdk/anthropic";
import { createOpenAI } from "@ai-sdk/openai";
import { createOpenAICompatible } from "@ai-sdk/openai-compatible";
import {
  APICallError,
  generateText,
  jsonSchema,
  streamText,
  tool,
  type LanguageModel,
  type ToolSet,
} from "ai";
import { describe, expect, test } from "vitest";
import { ServiceError } from "../../../src/errors/service-error.ts";
import { failing, THINKING_AND_TOOLS } from "./recorded-events.ts";
import { fetchOf, testApp, type TestApp } from "../../support/test-app.ts";

const address = { baseURL: "http://daybreak.test/v1", apiKey: "any" };
const anyInput = tool({ inputSchema: jsonSchema<object>({ type: "object" }), execute: () => "fine" });
const tools: ToolSet = { get_weather: anyInput, get_time: anyInput };

/** Provider packages. Their schemas are strict: a missing field or one of another type is an error. */
const PROVIDERS: { api: string; thinks: boolean; languageModel: (all: TestApp) => LanguageModel }[] = [
  {
    api: "openai-compatible",
    thinks: true,
    languageModel: (all) =>
      createOpenAICompatible({ ...address, name: "daybreak", fetch: fetchOf(all), includeUsage: true })(
        "fake",
      ),
  },
  {
    api: "openai, chat",
    thinks: false, // the service that it is made for shows no reasoning there
    languageModel: (all) => createOpenAI({ ...address, fetch: fetchOf(all) }).chat("fake"),
  },
  {
    api: "openai, responses",
    thinks: true,
    languageModel: (all) => createOpenAI({ ...address, fetch: fetchOf(all) }).responses("fake"),
  },
  {
    api: "anthropic",
    thinks: true,
    languageModel: (all) => createAnthropic({ ...address, fetch: fetchOf(all) })("fake"),
  },
];

describe.for(PROVIDERS)("the Vercel AI SDK through $api", ({ thinks, languageModel }) => {
  test("reads reasoning, text and tool calls, streamed or not", async () => {
    const request = {
      model: languageModel(testApp({ events: THINKING_AND_TOOLS })),
      maxRetries: 0,
      maxOutputTokens: 100,
      prompt: "hi",
      tools,
    };
    const complete = await generateText(request);
    const streamed = streamText(request);
    const folded = {
      text: await streamed.text,
      reasoningText: await streamed.reasoningText,
      finishReason: await streamed.finishReason,
      toolCalls: await streamed.toolCalls,
      usage: await streamed.usage,
    };
    const { text, reasoningText, finishReason, toolCalls, usage } = complete;
    for (const answer of [{ text, reasoningText, finishReason, toolCalls, usage }, folded]) {
      expect(answer).toMatchObject({
        text: "Let me look — “ok”.",
        reasoningText: thinks ? "The user wants the weather." : undefined,
        finishReason: "tool-calls",
        toolCalls: [
          { toolName: "get_weather", input: { city: "Köln" } },
          { toolName: "get_time", input: {} },
        ],
        usage: { inputTokens: 24, outputTokens: 31, totalTokens: 55 },
      });
    }
  });

  test("throws an error in the middle of a stream", async () => {
    const all = testApp();
    all.engine.script = () => failing(new ServiceError("engine_crashed", "It is gone."));
    const errors: unknown[] = [];
    const { fullStream } = streamText({
      model: languageModel(all),
      maxRetries: 0,
      maxOutputTokens: 100,
      prompt: "hi",
      onError: ({ error }) => void errors.push(error),
    });
    const types = new Set<string>();
    for await (const { type } of fullStream) types.add(type);
    expect(types).toContain("text-delta");
    expect(
      JSON.stringify(errors, (_key, value: unknown) => (value instanceof Error ? value.message : value)),
    ).toContain("It is gone.");
  });

  test("throws an error before the first token with its status", async () => {
    const all = testApp();
    all.engine.script = async function* () {
      yield* [];
      throw new ServiceError("engine_crashed", "It is gone.");
    };
    const model = languageModel(all);
    const failed = generateText({ model, maxRetries: 0, maxOutputTokens: 100, prompt: "hi" });
    await expect(failed).rejects.toThrow(APICallError);
    await expect(failed).rejects.toMatchObject({ statusCode: 500, isRetryable: true });
  });
});
