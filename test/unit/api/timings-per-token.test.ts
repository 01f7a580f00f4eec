import { describe, expect, test } from "vitest";
import type { GenerationEvent } from "../../../src/engine/protocol/generation.ts";
import { lines, sseEvents, testApp } from "../../support/test-app.ts";
import { PLAIN_TEXT } from "./recorded-events.ts";

const messages = [{ role: "user", content: "Hi" }];
const requestFields = { stream: true, timings_per_token: true };

/** Usage and timings after this many tokens, of which the first is computed with the prompt. */
const soFar = (completionTokens: number) => ({
  usage: {
    promptTokens: 5,
    completionTokens,
    cachedTokens: 1,
    reasoningTokens: 0,
    guesses: { tokens: 4, kept: 3 },
  },
  timings: { promptMs: 10, completionMs: 20 * (completionTokens - 1) },
});

const WITH_STATISTICS: readonly GenerationEvent[] = [
  ...PLAIN_TEXT.slice(0, 2),
  { type: "text-delta", text: "Hello", soFar: soFar(1) },
  { type: "text-delta", text: " world", soFar: soFar(2) },
  ...PLAIN_TEXT.slice(-1),
];

/** Returns the timings of an answer's chunks, without chunks that have none. */
async function timingsOf(path: string, body: object, events = WITH_STATISTICS): Promise<unknown[]> {
  const app = testApp({ events });
  const chunks = await sseEvents(await app.post(path, body));
  return chunks
    .filter(({ data }) => data !== "[DONE]")
    .flatMap(({ data }) => {
      const { timings }: { timings?: unknown } = JSON.parse(data);
      return timings === undefined ? [] : [timings];
    });
}

const FIRST = {
  cache_n: 1,
  prompt_n: 4,
  prompt_ms: 10,
  prompt_per_token_ms: 2.5,
  prompt_per_second: 400,
  predicted_n: 1,
  predicted_ms: 0,
  predicted_per_token_ms: 0,
  predicted_per_second: 0,
  draft_n: 4,
  draft_n_accepted: 3,
};

describe("timings_per_token", () => {
  test.each([
    ["/v1/chat/completions", { messages }],
    ["/v1/completions", { prompt: "hi" }],
    ["/completion", { prompt: "hi" }],
  ])("adds llama.cpp's timings to each text chunk of %s, and to the last one", async (path, body) => {
    expect(await timingsOf(path, { ...body, ...requestFields })).toEqual([
      FIRST,
      { ...FIRST, predicted_n: 2, predicted_ms: 20, predicted_per_token_ms: 10, predicted_per_second: 100 },
      expect.objectContaining({ cache_n: 0, prompt_n: 5, predicted_n: 2, predicted_ms: 20 }),
    ]);
  });

  test.each([
    ["/v1/chat/completions", { messages }],
    ["/v1/completions", { prompt: "hi" }],
  ])("adds timings to a non-streaming answer of %s with one choice", async (path, body) => {
    const app = testApp({ events: WITH_STATISTICS });
    const ask = async (more: object): Promise<unknown> =>
      await (await app.post(path, { ...body, ...more })).json();
    const timings = expect.objectContaining({ cache_n: 0, prompt_n: 5, predicted_n: 2, predicted_ms: 20 });
    expect(await ask({ timings_per_token: true })).toMatchObject({ timings });
    expect(await ask({ timings_per_token: true, n: 2 })).not.toHaveProperty("timings");
    expect(await ask({})).not.toHaveProperty("timings");
  });

  test.each([
    ["/v1/chat/completions", { messages }],
    ["/v1/completions", { prompt: "hi" }],
  ])("is off by default on %s", async (path, body) => {
    expect(await timingsOf(path, { ...body, stream: true })).toEqual([]);
    const wrong = await testApp().post(path, { ...body, timings_per_token: "yes" });
    expect([wrong.status, await wrong.text()]).toEqual([400, expect.stringContaining("timings_per_token")]);
  });

  test.each([
    ["/api/chat", { messages }, ["Hello", " world"].map((content) => ({ message: { content } }))],
    ["/api/generate", { prompt: "hi" }, ["Hello", " world"].map((response) => ({ response }))],
  ])("adds statistics to each line of %s, like those of the last one", async (path, body, pieces) => {
    const app = testApp({ events: WITH_STATISTICS });
    const statistics = {
      prompt_tokens: 5,
      cached_tokens: 1,
      draft_tokens: 4,
      draft_tokens_accepted: 3,
      tokens_per_second: 100,
    };
    const streamed = await lines(await app.post(path, { ...body, ...requestFields }));
    expect(streamed).toMatchObject([
      { ...pieces[0], ...statistics, completion_tokens: 1, done: false },
      { ...pieces[1], ...statistics, completion_tokens: 2, done: false },
      { completion_tokens: 2, done: true },
    ]);
    expect(app.lastRequest()).toMatchObject({ timings: true });
    await app.post(path, body);
    expect(app.lastRequest()).not.toHaveProperty("timings");
  });

  test("counts tokens that were joined to one delta", async () => {
    const events: GenerationEvent[] = [
      ...PLAIN_TEXT.slice(0, 2),
      { type: "reasoning-delta", text: "Hm", soFar: soFar(3) },
      { type: "reasoning-delta", text: "  ", soFar: soFar(4) },
      { type: "reasoning-delta", text: "so", soFar: soFar(5) },
      ...PLAIN_TEXT.slice(-1),
    ];
    const timings = await timingsOf("/v1/chat/completions", { messages, ...requestFields }, events);
    expect(timings).toMatchObject([{ predicted_n: 3 }, { predicted_n: 5 }, { predicted_n: 2 }]);
  });
});
