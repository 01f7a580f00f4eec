import { Agent } from "@mastra/core/agent";
import { createTool } from "@mastra/core/tools";
import { beforeAll, describe, expect, test } from "vitest";
import { z } from "zod";
import { AMPLE_TOKENS, GREEDY, QUESTION_FOR_WEATHER } from "../support/certain-requests.ts";
import { sharedDaemon } from "../support/shared-daemon.ts";
import type { TestDaemon } from "../support/start-daemon.ts";
import { loadScripted } from "./load-scripted.ts";

const SCRIPTED = "mastra-script";
const ANSWER = "The dawn chorus begins at half past four.";
const REPORT = z.object({ city: z.enum(["Rome", "Oslo"]), sunny: z.boolean() });

let daemon: TestDaemon;

beforeAll(async () => {
  daemon = await sharedDaemon();
  await loadScripted(daemon, SCRIPTED, {
    call: { name: "get_weather", arguments: { city: "Oslo" } },
    answer: ANSWER,
  });
});

/** An agent that tells the weather; keeps for which cities it has asked its tool. */
function weatherAgent(model: string, asked: string[] = []): Agent {
  const getWeather = createTool({
    id: "get_weather",
    description: "Get the weather of a city",
    inputSchema: z.object({ city: z.enum(["Rome", "Oslo"]) }),
    execute: async ({ city }) => {
      asked.push(city);
      return { weather: "sunny" };
    },
  });
  return new Agent({
    id: "weather",
    name: "Weather",
    instructions: "You tell the weather.",
    model: { id: `daybreak/${model}`, url: `${daemon.url}/v1`, apiKey: "any" },
    maxRetries: 0,
    tools: { get_weather: getWeather },
  });
}

describe("Mastra", () => {
  test("runs a tool and answers, whole and streamed", async () => {
    const asked: string[] = [];
    const { text } = await weatherAgent(SCRIPTED, asked).generate(QUESTION_FOR_WEATHER);
    expect(text).toBe(ANSWER);
    const streamed = await weatherAgent(SCRIPTED, asked).stream(QUESTION_FOR_WEATHER);
    const pieces: string[] = [];
    for await (const piece of streamed.textStream) pieces.push(piece);
    expect(pieces.join("")).toBe(ANSWER);
    expect(pieces.length).toBeGreaterThan(2);
    expect(asked).toEqual(["Oslo", "Oslo"]);
  });

  test("gives an object that fits a zod schema", async () => {
    const { object } = await weatherAgent("daybreak-mini").generate(QUESTION_FOR_WEATHER, {
      structuredOutput: { schema: REPORT },
      toolChoice: "none",
      modelSettings: { ...GREEDY, maxOutputTokens: AMPLE_TOKENS },
    });
    expect(REPORT.parse(object)).toEqual(object);
  });
});
