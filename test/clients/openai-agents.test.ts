import {
  Agent,
  handoff,
  OpenAIChatCompletionsModel,
  OpenAIResponsesModel,
  run,
  setTracingDisabled,
  tool,
} from "@openai/agents";
import OpenAI from "openai";
import { beforeAll, describe, expect, test } from "vitest";
import { z } from "zod";
import { AMPLE_TOKENS, GREEDY, QUESTION_FOR_WEATHER } from "../support/certain-requests.ts";
import { sharedDaemon } from "../support/shared-daemon.ts";
import type { TestDaemon } from "../support/start-daemon.ts";
import { loadScripted } from "./load-scripted.ts";

const name = "daybreak-mini";
/** One that ends with a report, where the small one would go on calling its tool. */
const REPORTER = "reporter";
const REPORT = z.object({ city: z.enum(["Rome", "Oslo"]), sunny: z.boolean() });

let daemon: TestDaemon;

beforeAll(async () => {
  daemon = await sharedDaemon();
  setTracingDisabled(true);
  await loadScripted(daemon, REPORTER, {
    call: { name: "get_weather", arguments: { city: "Oslo" } },
    answer: '{"city":"Oslo","sunny":true}',
  });
});

const client = () => new OpenAI({ baseURL: `${daemon.url}/v1`, apiKey: "any", maxRetries: 0 });
const modelSettings = { ...GREEDY, maxTokens: AMPLE_TOKENS };

const MODELS = [
  { api: "responses", model: (id = name) => new OpenAIResponsesModel(client(), id) },
  { api: "chat completions", model: (id = name) => new OpenAIChatCompletionsModel(client(), id) },
];

/** The weather is fine wherever it is asked for; keeps where that was. */
function weatherTool(asked: string[]) {
  return tool({
    name: "get_weather",
    description: "Get the weather of a city",
    parameters: z.object({ city: z.enum(["Rome", "Oslo"]) }),
    execute: ({ city }) => {
      asked.push(city);
      return `It is sunny in ${city}.`;
    },
  });
}

describe.for(MODELS)("the OpenAI Agents SDK over $api", ({ model }) => {
  test("runs a tool and tells its result", async () => {
    const asked: string[] = [];
    const agent = new Agent({ name: "Weather", model: model(), modelSettings, tools: [weatherTool(asked)] });
    const { finalOutput } = await run(agent, QUESTION_FOR_WEATHER);
    expect(asked).toEqual(["Rome"]);
    expect(finalOutput).toMatch(/sunny/i);
  });

  test("runs a tool while it streams, and gives the answer piece by piece", async () => {
    const asked: string[] = [];
    const agent = new Agent({ name: "Weather", model: model(), modelSettings, tools: [weatherTool(asked)] });
    const streamed = await run(agent, QUESTION_FOR_WEATHER, { stream: true });
    const pieces: string[] = [];
    for await (const piece of streamed.toTextStream()) pieces.push(piece);
    await streamed.completed;
    expect(asked).toEqual(["Rome"]);
    expect(pieces.length).toBeGreaterThan(2);
    expect(pieces.join("")).toBe(streamed.finalOutput);
  });

  test("ends with an output of its type", async () => {
    const agent = new Agent({ name: "Report", model: model(), modelSettings, outputType: REPORT });
    const { finalOutput } = await run(agent, QUESTION_FOR_WEATHER);
    expect(REPORT.parse(finalOutput)).toEqual(finalOutput);
  });

  test("ends with an output of its type behind a tool", async () => {
    const asked: string[] = [];
    const tools = [weatherTool(asked)];
    const agent = new Agent({ name: "Report", model: model(REPORTER), tools, outputType: REPORT });
    const { finalOutput } = await run(agent, QUESTION_FOR_WEATHER);
    expect(asked).toEqual(["Oslo"]);
    expect(finalOutput).toEqual({ city: "Oslo", sunny: true });
  });

  test("hands over to another agent, which answers", async () => {
    const expert = new Agent({ name: "Expert", model: model(), modelSettings });
    const triage = new Agent({
      name: "Triage",
      model: model(),
      // Whether it hands over is not left to a model as small as this one.
      modelSettings: { ...modelSettings, toolChoice: "transfer_to_Expert" },
      handoffs: [handoff(expert)],
    });
    const { lastAgent, finalOutput } = await run(triage, "What is Daybreak?");
    expect(lastAgent?.name).toBe("Expert");
    expect(finalOutput).toMatch(/\w/);
  });
});
