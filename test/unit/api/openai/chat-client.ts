import OpenAI from "openai";
import { expect } from "vitest";
import type { z } from "zod";
import { chatCompletionChunkSchema } from "../../../../src/api/openai/chat-answer.ts";
import { fetchOf, type TestApp } from "../../../support/test-app.ts";

export const PATH = "/v1/chat/completions";
export const messages = [{ role: "user" as const, content: "hi" }];
export const TOOL = {
  type: "function" as const,
  function: { name: "get_weather", parameters: { type: "object" } },
};

/** Official client, connected to an app without a socket. */
export function clientOf(all: TestApp): OpenAI {
  return new OpenAI({
    baseURL: "http://daybreak.test/v1",
    apiKey: "any",
    fetch: fetchOf(all),
    maxRetries: 0,
  });
}

/** Returns the chunks of a stream, which must match their schema and end with [DONE]. */
export function chunksOf(events: readonly { data: string }[]): z.output<typeof chatCompletionChunkSchema>[] {
  expect(events.at(-1)?.data).toBe("[DONE]");
  return events.slice(0, -1).map(({ data }) => chatCompletionChunkSchema.strict().parse(JSON.parse(data)));
}
