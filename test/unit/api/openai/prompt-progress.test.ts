import { expect, test } from "vitest";
import { sseEvents, testApp } from "../../../support/test-app.ts";
import { PLAIN_TEXT, PROGRESS } from "../recorded-events.ts";
import { messages } from "./chat-client.ts";

/** Returns the progress of the prompt in a stream, with the first choice of its chunk. */
async function progressOf(path: string, body: object): Promise<unknown[]> {
  const answer = await testApp({ events: PLAIN_TEXT }).post(path, { model: "fake", stream: true, ...body });
  const chunks = (await sseEvents(answer)).slice(0, -1).map(({ data }) => JSON.parse(data));
  return chunks
    .filter((chunk) => "prompt_progress" in chunk)
    .map(({ choices, prompt_progress: progress }) => [progress, choices]);
}

test.each([
  ["chat", "/v1/chat/completions", { messages }, { index: 0, delta: {}, finish_reason: null }],
  ["text", "/v1/completions", { prompt: "hi" }, { index: 0, text: "", logprobs: null, finish_reason: null }],
])(
  "a streamed completion of %s reports the progress of the prompt if requested",
  async (_what, path, body, choice) => {
    expect(await progressOf(path, { ...body, return_progress: true })).toEqual([[PROGRESS, [choice]]]);
    expect(await progressOf(path, body)).toEqual([]);
  },
);
