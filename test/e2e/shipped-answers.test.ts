import Anthropic from "@anthropic-ai/sdk";
import { zodOutputFormat } from "@anthropic-ai/sdk/helpers/zod";
import { Ollama } from "ollama";
import OpenAI from "openai";
import { zodResponseFormat, zodTextFormat } from "openai/helpers/zod";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { z } from "zod";
import { likeness } from "../support/likeness.ts";
import { loadModel, sharedDaemon, unloadModel } from "../support/shared-daemon.ts";
import type { TestDaemon } from "../support/start-daemon.ts";
import { tinyPng } from "../support/tiny-png.ts";

/** Greedy answers of the shipped models through the official clients, to questions that any version answers. */

const model = "daybreak-mini";
const OTHERS = ["daybreak-mini-embed", "daybreak-mini-vision"];
const MAX_TOKENS = 120;
/** Greedy sampling. One client lacks this field in its types but sends it. */
const greedy = { temperature: 0 };

let daemon: TestDaemon;
let openai: OpenAI;
let anthropic: Anthropic;
let ollama: Ollama;

beforeAll(async () => {
  daemon = await sharedDaemon();
  for (const each of OTHERS) await loadModel(daemon, each);
  openai = new OpenAI({ baseURL: `${daemon.url}/v1`, apiKey: "any", maxRetries: 0 });
  anthropic = new Anthropic({ baseURL: daemon.url, apiKey: "any", maxRetries: 0 });
  ollama = new Ollama({ host: `${daemon.url}/ollama` });
});

afterAll(async () => {
  for (const each of OTHERS) await unloadModel(daemon, each);
});

const user = (content: string) => [{ role: "user" as const, content }];

/** Asks one question through each API. */
const APIS: { api: string; ask: (question: string) => Promise<string> }[] = [
  {
    api: "chat completions",
    ask: async (question) => {
      const body = { model, messages: user(question), ...greedy, max_tokens: MAX_TOKENS };
      return (await openai.chat.completions.create(body)).choices[0]?.message.content ?? "";
    },
  },
  {
    api: "responses",
    ask: async (question) => {
      const body = { model, input: question, ...greedy, max_output_tokens: MAX_TOKENS };
      return (await openai.responses.create(body)).output_text;
    },
  },
  {
    api: "messages",
    ask: async (question) => {
      const body = { model, messages: user(question), ...greedy, max_tokens: MAX_TOKENS };
      return await anthropic.messages.stream(body).finalText();
    },
  },
  {
    api: "Ollama",
    ask: async (question) => {
      const options = { ...greedy, num_predict: MAX_TOKENS };
      return (await ollama.chat({ model, messages: user(question), options })).message.content;
    },
  },
];

describe.for(APIS)("through $api daybreak-mini", ({ ask }) => {
  test("knows its name", async () => {
    expect(await ask("Who are you?")).toMatch(/daybreak/i);
  });

  test("adds two numbers", async () => {
    expect(await ask("What is 3 + 4?")).toMatch(/\b7\b/);
  });
});

describe("daybreak-mini reasons when requested, then answers correctly", () => {
  const question = "What is 12 + 30?";

  test("in chat completions", async () => {
    const { choices } = await openai.chat.completions.create({
      model,
      messages: user(question),
      ...greedy,
      max_tokens: MAX_TOKENS,
      reasoning_effort: "low",
    });
    expect(choices[0]?.message).toMatchObject({
      reasoning_content: expect.stringMatching(/\w/),
      content: expect.stringMatching(/\b42\b/),
    });
  });

  test("in responses", async () => {
    const { output } = await openai.responses
      .stream({ model, input: question, ...greedy, reasoning: { effort: "low" } })
      .finalResponse();
    expect(output).toMatchObject([
      { type: "reasoning", summary: [{ text: expect.stringMatching(/\w/) }] },
      { type: "message", content: [{ text: expect.stringMatching(/\b42\b/) }] },
    ]);
  });

  test("in messages", async () => {
    const { content } = await anthropic.messages.create({
      model,
      messages: user(question),
      ...greedy,
      max_tokens: 1100,
      thinking: { type: "enabled", budget_tokens: 1024 },
    });
    expect(content).toMatchObject([
      { type: "thinking", thinking: expect.stringMatching(/\w/) },
      { type: "text", text: expect.stringMatching(/\b42\b/) },
    ]);
  });
});

test("daybreak-mini closes its reasoning after the budget, and its answer has no tag", async () => {
  const budget = { thinking_budget_tokens: 2 };
  const { choices } = await openai.chat.completions.create({
    model,
    messages: user("What is 7+5?"),
    ...greedy,
    max_tokens: MAX_TOKENS,
    ...budget,
  });
  expect(choices[0]?.message).toMatchObject({
    reasoning_content: expect.stringMatching(/\w/),
    content: expect.stringMatching(/^[^<>]*\b12\b[^<>]*$/),
  });
});

const PERSON = z.object({ name: z.string(), age: z.number() });
const ABOUT_ANNA = "Give me JSON with name and age: Anna is 31 years old.";

describe("an answer by a zod schema repeats the facts of the prompt", () => {
  test("in chat completions", async () => {
    const { choices } = await openai.chat.completions.parse({
      model,
      messages: user(ABOUT_ANNA),
      ...greedy,
      response_format: zodResponseFormat(PERSON, "person"),
    });
    expect(choices[0]?.message.parsed).toEqual({ name: "Anna", age: 31 });
  });

  test("in responses", async () => {
    const { output_parsed: parsed } = await openai.responses.parse({
      model,
      input: ABOUT_ANNA,
      ...greedy,
      text: { format: zodTextFormat(PERSON, "person") },
    });
    expect(parsed).toEqual({ name: "Anna", age: 31 });
  });

  test("in messages", async () => {
    const { parsed_output: parsed } = await anthropic.messages.parse({
      model,
      messages: user(ABOUT_ANNA),
      ...greedy,
      max_tokens: MAX_TOKENS,
      output_config: { format: zodOutputFormat(PERSON) },
    });
    expect(parsed).toEqual({ name: "Anna", age: 31 });
  });
});

test("daybreak-mini-embed ranks a paraphrase above another topic", async () => {
  const input = ["How do I delete a model?", "How can I remove a model?", "The daemon listens on port 8080."];
  const { data } = await openai.embeddings.create({ model: "daybreak-mini-embed", input });
  const [question, paraphrase, other] = data.map(({ embedding }) => embedding);
  expect(likeness(paraphrase!, question!)).toBeGreaterThan(likeness(other!, question!));
});

function isInDisc(x: number, y: number): boolean {
  return Math.hypot(x - 31.5, y - 31.5) < 11;
}

describe("with its projector the model names the color of an image", () => {
  const vision = "daybreak-mini-vision";
  const question = "What colour is the shape?";
  const COLOURS = { red: [215, 35, 35], blue: [40, 70, 220] } as const;
  const pictureOf = (colour: keyof typeof COLOURS): string => {
    const png = tinyPng(64, 64, (x, y) => (isInDisc(x, y) ? COLOURS[colour] : [250, 250, 250]));
    return Buffer.from(png).toString("base64");
  };

  test.for(["red", "blue"] as const)("sees %s", async (colour) => {
    const data = pictureOf(colour);
    const { choices } = await openai.chat.completions.create({
      model: vision,
      ...greedy,
      max_tokens: MAX_TOKENS,
      messages: [
        {
          role: "user",
          content: [
            { type: "image_url", image_url: { url: `data:image/png;base64,${data}` } },
            { type: "text", text: question },
          ],
        },
      ],
    });
    expect(choices[0]?.message.content).toContain(colour);
    const { content } = await anthropic.messages.create({
      model: vision,
      ...greedy,
      max_tokens: MAX_TOKENS,
      messages: [
        {
          role: "user",
          content: [
            { type: "image", source: { type: "base64", media_type: "image/png", data } },
            { type: "text", text: question },
          ],
        },
      ],
    });
    expect(content).toMatchObject([{ type: "text", text: expect.stringContaining(colour) }]);
    const { message } = await ollama.chat({
      model: vision,
      options: { ...greedy, num_predict: MAX_TOKENS },
      messages: [{ role: "user", content: question, images: [data] }],
    });
    expect(message.content).toContain(colour);
  });
});
