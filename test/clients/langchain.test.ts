import { ChatAnthropic } from "@langchain/anthropic";
import { HumanMessage, ToolMessage, type AIMessageChunk, type UsageMetadata } from "@langchain/core/messages";
import { tool } from "@langchain/core/tools";
import { createReactAgent } from "@langchain/langgraph/prebuilt";
import { ChatOllama, OllamaEmbeddings } from "@langchain/ollama";
import { ChatOpenAI, OpenAIEmbeddings } from "@langchain/openai";
import { createAgent, providerStrategy, toolStrategy } from "langchain";
import { beforeAll, describe, expect, test } from "vitest";
import { z } from "zod";
import { activeRequests } from "../support/active-requests.ts";
import { AMPLE_TOKENS, GREEDY, QUESTION_FOR_WEATHER } from "../support/certain-requests.ts";
import { sharedDaemon } from "../support/shared-daemon.ts";
import type { TestDaemon } from "../support/start-daemon.ts";

const model = "daybreak-mini";
const COLOUR = z.object({ colour: z.enum(["red", "blue"]), sure: z.boolean() });
/** Goes on beyond any limit of tokens, for seconds. */
const ENDLESS = z.object({ list: z.array(z.number().int().min(0).max(9)).min(1000) });

let daemon: TestDaemon;

beforeAll(async () => {
  daemon = await sharedDaemon();
});

const common = { model, ...GREEDY, maxRetries: 0 };

const openai = (useResponsesApi = false) =>
  new ChatOpenAI({
    ...common,
    useResponsesApi,
    maxTokens: AMPLE_TOKENS,
    apiKey: "any",
    configuration: { baseURL: `${daemon.url}/v1` },
  });
const anthropic = () =>
  new ChatAnthropic({ ...common, maxTokens: AMPLE_TOKENS, apiKey: "any", anthropicApiUrl: daemon.url });
const ollama = () => new ChatOllama({ ...common, numPredict: AMPLE_TOKENS, baseUrl: `${daemon.url}/ollama` });

const getWeather = tool(({ city }) => `It is sunny in ${city}.`, {
  name: "get_weather",
  description: "Get the weather of a city",
  schema: z.object({ city: z.enum(["Rome", "Oslo"]) }),
});

/** Tokens of prompt and answer, as the daemon has counted them. */
function tokensOf({ usage_metadata: usage }: Counted): number | undefined {
  return usage?.total_tokens;
}

interface Counted {
  readonly usage_metadata?: UsageMetadata | undefined;
}

const CLIENTS = [
  { client: "ChatOpenAI, chat completions", chat: () => openai() },
  { client: "ChatOpenAI, responses", chat: () => openai(true) },
  { client: "ChatAnthropic", chat: anthropic },
  { client: "ChatOllama", chat: ollama },
];

describe.for(CLIENTS)("LangChain's $client", ({ chat }) => {
  test("streams the answer that it gives as a whole, with its tokens counted", async () => {
    const whole = await chat().invoke("Hello");
    expect(whole.text).toMatch(/\w/);
    let streamed: AIMessageChunk | undefined;
    let pieces = 0;
    for await (const chunk of await chat().stream("Hello")) {
      streamed = streamed ? streamed.concat(chunk) : chunk;
      pieces += 1;
    }
    expect(pieces).toBeGreaterThan(2);
    expect(streamed?.text).toBe(whole.text);
    expect(tokensOf(whole)).toBeGreaterThan(2);
    expect(tokensOf(streamed!)).toBe(tokensOf(whole));
  });

  test("calls a bound tool and answers with its result", async () => {
    const withTools = chat().bindTools([getWeather]);
    const question = new HumanMessage(QUESTION_FOR_WEATHER);
    const asked = await withTools.invoke([question]);
    expect(asked.tool_calls).toMatchObject([{ name: "get_weather", args: { city: "Rome" } }]);
    const result = await getWeather.invoke({ ...asked.tool_calls![0]!, type: "tool_call" });
    expect(result).toBeInstanceOf(ToolMessage);
    const answers = await withTools.invoke([question, asked, result]);
    expect(answers.text).toMatch(/sunny/i);
  });

  test.for(["jsonSchema", "functionCalling"] as const)("fits a zod schema with %s", async (method) => {
    const answer = await chat().withStructuredOutput(COLOUR, { method }).invoke("Is the sky blue?");
    expect(COLOUR.parse(answer)).toEqual(answer);
  });

  test("ends a generation that is aborted, which frees its slot", async () => {
    const abort = new AbortController();
    const endless = chat().withStructuredOutput(ENDLESS).invoke("Count", { signal: abort.signal });
    await expect.poll(() => activeRequests(daemon)).toBe(1);
    abort.abort();
    await expect(endless).rejects.toThrow(/abort/i);
    await expect.poll(() => activeRequests(daemon)).toBe(0);
  });
});

test("LangChain's jsonMode gives some JSON", async () => {
  const answer = await openai()
    .withStructuredOutput(z.looseObject({}), { method: "jsonMode" })
    .invoke("Write a JSON object with the name Anna and the age 30.");
  expect(answer).toBeTypeOf("object");
});

describe("LangChain's agents", () => {
  test.for(CLIENTS)("LangGraph's through $client calls a tool, then tells its result", async ({ chat }) => {
    const agent = createReactAgent({ llm: chat(), tools: [getWeather] });
    const { messages } = await agent.invoke({ messages: [new HumanMessage(QUESTION_FOR_WEATHER)] });
    expect(messages.map(({ type }) => type)).toEqual(["human", "ai", "tool", "ai"]);
    expect(messages.at(-1)!.text).toMatch(/sunny/i);
  });

  test("LangGraph's ends with a response of the format that was asked for", async () => {
    // LangGraph asks for it with the agent's own answer as the last message.
    const agent = createReactAgent({ llm: openai(), tools: [getWeather], responseFormat: COLOUR });
    const { structuredResponse } = await agent.invoke({
      messages: [new HumanMessage(QUESTION_FOR_WEATHER)],
    });
    expect(COLOUR.parse(structuredResponse)).toEqual(structuredResponse);
  });

  test("LangChain's own has its response bound by the provider's format, and by a tool", async () => {
    const question = { messages: [new HumanMessage("Is the sky blue?")] };
    const byFormat = createAgent({ model: openai(), tools: [], responseFormat: providerStrategy(COLOUR) });
    const byTool = createAgent({ model: openai(), tools: [], responseFormat: toolStrategy(COLOUR) });
    for (const agent of [byFormat, byTool]) {
      const { structuredResponse } = await agent.invoke(question);
      expect(COLOUR.parse(structuredResponse)).toEqual(structuredResponse);
    }
  });
});

test("LangChain's embeddings are unit vectors through either API", async () => {
  const clients = [
    new OpenAIEmbeddings({ model, apiKey: "any", configuration: { baseURL: `${daemon.url}/v1` } }),
    new OllamaEmbeddings({ model, baseUrl: `${daemon.url}/ollama` }),
  ];
  for (const client of clients) {
    const [one, two] = await client.embedDocuments(["The sun rises.", "The moon sets."]);
    expect(Math.hypot(...one!)).toBeCloseTo(1, 3);
    expect(two).toHaveLength(one!.length);
    expect(await client.embedQuery("The sun rises.")).toHaveLength(one!.length);
  }
});
