import { createOpenAICompatible } from "@ai-sdk/openai-compatible";
import Anthropic from "@anthropic-ai/sdk";
import { generateText, stepCountIs, tool } from "ai";
import { Ollama } from "ollama";
import OpenAI from "openai";
import { zodResponseFormat } from "openai/helpers/zod";
import { beforeAll, describe, expect, test } from "vitest";
import { z } from "zod";
import { sharedDaemon } from "../support/shared-daemon.ts";
import type { TestDaemon } from "../support/start-daemon.ts";

/** Tool calls that the shipped model chooses, over several turns, through the official clients. */

const model = "daybreak-mini";
const MAX_TOKENS = 120;
/** Greedy sampling. One client lacks this field in its types but sends it. */
const greedy = { temperature: 0 };

let daemon: TestDaemon;
let openai: OpenAI;
let anthropic: Anthropic;
let ollama: Ollama;

beforeAll(async () => {
  daemon = await sharedDaemon();
  openai = new OpenAI({ baseURL: `${daemon.url}/v1`, apiKey: "any", maxRetries: 0 });
  anthropic = new Anthropic({ baseURL: daemon.url, apiKey: "any", maxRetries: 0 });
  ollama = new Ollama({ host: `${daemon.url}/ollama` });
});

const user = (content: string) => [{ role: "user" as const, content }];

const WEATHER = {
  name: "get_weather",
  description: "Get the weather of a city",
  parameters: { type: "object", properties: { city: { type: "string" } }, required: ["city"] },
};
const ABOUT_PARIS = "What is the weather in Paris?";
const RESULT = '{"temperature": 4, "sky": "rainy"}';
/** Text of the tool's result in an answer. */
const RESULT_TEXT = /\b4\b|rain/;

describe("the model calls a tool with the right city and repeats its result", () => {
  test("by runTools of chat completions, also streamed", async () => {
    const called: unknown[] = [];
    const weather = {
      type: "function" as const,
      function: {
        ...WEATHER,
        parse: JSON.parse,
        function: (args: object) => {
          called.push(args);
          return RESULT;
        },
      },
    };
    const request = { model, messages: user(ABOUT_PARIS), ...greedy, tools: [weather] };
    expect(await openai.chat.completions.runTools(request).finalContent()).toMatch(RESULT_TEXT);
    expect(await openai.chat.completions.runTools({ ...request, stream: true }).finalContent()).toMatch(
      RESULT_TEXT,
    );
    expect(called).toEqual([{ city: "Paris" }, { city: "Paris" }]);
  });

  test("by responses that continue each other", async () => {
    const settings = {
      model,
      ...greedy,
      tools: [{ type: "function" as const, strict: true, ...WEATHER }],
    };
    const asked = await openai.responses.create({ ...settings, input: ABOUT_PARIS });
    const call = asked.output.find((item) => item.type === "function_call");
    expect(JSON.parse(call?.arguments ?? "")).toEqual({ city: "Paris" });
    const answered = await openai.responses.create({
      ...settings,
      previous_response_id: asked.id,
      input: [{ type: "function_call_output", call_id: call!.call_id, output: RESULT }],
    });
    expect(answered.output_text).toMatch(RESULT_TEXT);
  });

  test("by the tool runner of messages", async () => {
    const called: unknown[] = [];
    const weather = {
      type: "custom" as const,
      name: WEATHER.name,
      description: WEATHER.description,
      input_schema: { ...WEATHER.parameters, type: "object" as const },
      parse: (input: unknown) => input,
      run: (input: unknown) => {
        called.push(input);
        return RESULT;
      },
    };
    const { content } = await anthropic.beta.messages.toolRunner({
      model,
      messages: user(ABOUT_PARIS),
      ...greedy,
      max_tokens: MAX_TOKENS,
      tools: [weather],
    });
    expect(called).toEqual([{ city: "Paris" }]);
    expect(content).toMatchObject([{ type: "text", text: expect.stringMatching(RESULT_TEXT) }]);
  });

  test("by Ollama's client", async () => {
    const tools = [{ type: "function", function: WEATHER }];
    const settings = { model, tools, options: { ...greedy, num_predict: MAX_TOKENS } };
    const { message } = await ollama.chat({ ...settings, messages: user(ABOUT_PARIS) });
    expect(message.tool_calls).toMatchObject([{ function: { arguments: { city: "Paris" } } }]);
    const result = { role: "tool", tool_name: WEATHER.name, content: RESULT };
    const answer = await ollama.chat({ ...settings, messages: [...user(ABOUT_PARIS), message, result] });
    expect(answer.message.content).toMatch(RESULT_TEXT);
  });

  test("by the Vercel AI SDK", async () => {
    const called: unknown[] = [];
    const provider = createOpenAICompatible({ name: "daybreak", baseURL: `${daemon.url}/v1` });
    const { text, steps } = await generateText({
      model: provider(model),
      prompt: ABOUT_PARIS,
      ...greedy,
      maxRetries: 0,
      stopWhen: stepCountIs(3),
      tools: {
        get_weather: tool({
          description: WEATHER.description,
          inputSchema: z.object({ city: z.string() }),
          execute: (input) => {
            called.push(input);
            return RESULT;
          },
        }),
      },
    });
    expect(called).toEqual([{ city: "Paris" }]);
    expect(steps).toHaveLength(2);
    expect(text).toMatch(/\w/);
  });
});

test.each([
  ["Open the gate.", "gobax"],
  ["Please water the flowers now.", "lumef"],
  ["I need a taxi.", "tezin"],
])("%s calls the tool by its description, since its name means nothing", async (prompt, name) => {
  const tools = Object.entries({
    gobax: "Open the garden gate",
    lumef: "Water the flowers",
    tezin: "Call a taxi",
  }).map(([other, description]) => ({ type: "function" as const, function: { name: other, description } }));
  const { choices } = await openai.chat.completions.create({
    model,
    messages: user(prompt),
    ...greedy,
    tools,
  });
  expect(choices[0]?.message.tool_calls).toMatchObject([{ function: { name, arguments: "{}" } }]);
});

const FEED = {
  name: "feed",
  description: "Give food to an animal",
  parameters: {
    type: "object",
    properties: { pet: { type: "string" }, meal: { type: "string" } },
    required: ["pet", "meal"],
  },
};
const NOTE = {
  name: "save_note",
  description: "Saves a note with a text",
  parameters: { type: "object", properties: { text: { type: "string" } }, required: ["text"] },
};
const PAINT = {
  name: "paint_wall",
  description: "Paint a wall in a colour",
  parameters: {
    type: "object",
    properties: { count: { type: "integer" }, colour: { type: "string" } },
    required: ["count", "colour"],
  },
};

test.each([
  [
    "The donkey is hungry. Give it butter.",
    FEED,
    [{ name: "feed", arguments: { pet: "donkey", meal: "butter" } }],
  ],
  [
    "Note this: rivavo sour and zesar black",
    NOTE,
    [
      { name: "save_note", arguments: { text: "rivavo sour" } },
      { name: "save_note", arguments: { text: "zesar black" } },
    ],
  ],
  [
    "I want 2 orange walls. I want 5 black walls.",
    PAINT,
    [
      { name: "paint_wall", arguments: { count: 2, colour: "orange" } },
      { name: "paint_wall", arguments: { count: 5, colour: "black" } },
    ],
  ],
])(
  "%s calls a tool with the right arguments for words outside of the training data",
  async (prompt, definition, expected) => {
    const tools = [{ type: "function" as const, function: definition }];
    const { choices } = await openai.chat.completions.create({
      model,
      messages: user(prompt),
      ...greedy,
      tools,
    });
    const calls = (choices[0]?.message.tool_calls ?? []).filter((call) => call.type === "function");
    expect(calls.map(({ function: f }) => ({ name: f.name, arguments: JSON.parse(f.arguments) }))).toEqual(
      expected,
    );
  },
);

test("two cities are two calls with separate indices, or one without parallel calls", async () => {
  const request = {
    model,
    messages: user("What is the weather in Paris and Rome?"),
    ...greedy,
    tools: [{ type: "function" as const, function: WEATHER }],
    stream_options: { include_usage: true },
  };
  const both = await openai.chat.completions.stream(request).finalChatCompletion();
  const cities = both.choices[0]?.message.tool_calls?.map((call): unknown =>
    JSON.parse(call.function.arguments),
  );
  expect(cities).toEqual([{ city: "Paris" }, { city: "Rome" }]);
  const one = await openai.chat.completions
    .stream({ ...request, parallel_tool_calls: false })
    .finalChatCompletion();
  expect(one.choices[0]).toMatchObject({
    finish_reason: "tool_calls",
    message: { tool_calls: [{ function: { arguments: expect.stringContaining("Paris") } }] },
  });
  expect(one.choices[0]?.message.tool_calls).toHaveLength(1);
  // The second call is not generated: the answer ends before it, with the right usage.
  const [many = 0, few = 0] = [both, one].map((answer) => answer.usage?.completion_tokens);
  expect(one.usage?.prompt_tokens).toBe(both.usage?.prompt_tokens);
  expect(few).toBeGreaterThan(many / 3);
  expect(few).toBeLessThan(many * 0.8);
});

test("no tool is called with tool_choice none", async () => {
  const tools = [{ type: "function" as const, function: WEATHER }];
  const request = { model, messages: user(ABOUT_PARIS), ...greedy, tools, max_tokens: MAX_TOKENS };
  const { choices } = await openai.chat.completions.create({ ...request, tool_choice: "none" });
  expect(choices[0]).toMatchObject({ finish_reason: expect.stringMatching(/stop|length/) });
  expect(choices[0]?.message.tool_calls).toBeUndefined();
  expect(choices[0]?.message.content).not.toContain("<tool_call>");
  const message = await anthropic.messages.create({
    model,
    messages: user(ABOUT_PARIS),
    ...greedy,
    max_tokens: MAX_TOKENS,
    tools: [{ name: WEATHER.name, input_schema: { ...WEATHER.parameters, type: "object" } }],
    tool_choice: { type: "none" },
  });
  expect(message.content).toMatchObject([{ type: "text", text: expect.not.stringContaining("<tool_call>") }]);
});

test("a tool can be called before an answer with a schema", async () => {
  const messages = user("How is the weather in Paris?");
  const report = z.object({ city: z.enum(["Paris", "Rome"]), sky: z.enum(["sunny", "rainy"]) });
  const request = {
    model,
    ...greedy,
    max_tokens: MAX_TOKENS,
    tools: [{ type: "function" as const, function: { ...WEATHER, strict: true } }],
    response_format: zodResponseFormat(report, "report"),
  };
  const asked = openai.chat.completions.stream({ ...request, messages });
  const { message } = (await asked.finalChatCompletion()).choices[0]!;
  const [call] = message.tool_calls ?? [];
  expect(JSON.parse(call?.function.arguments ?? "")).toEqual({ city: "Paris" });
  const result = { role: "tool" as const, tool_call_id: call!.id, content: RESULT };
  const answered = await openai.chat.completions.parse({
    ...request,
    tool_choice: "none",
    messages: [...messages, message, result],
  });
  expect(report.parse(answered.choices[0]?.message.parsed)).toBeTruthy();
});
