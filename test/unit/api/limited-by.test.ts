import { describe, expect, test } from "vitest";
import { DONE, eventsOf } from "../../support/fake-engine.ts";
import { testApp } from "../../support/test-app.ts";

const message = { role: "user", content: "hi" };
/** Path, body, and location of limited_by in a non-streaming answer. */
const ROUTES: readonly [path: string, body: object, where: string][] = [
  ["/api/chat", { messages: [message], max_tokens: 3 }, ""],
  ["/api/generate", { prompt: "hi", max_tokens: 3 }, ""],
  ["/v1/chat/completions", { messages: [message], max_tokens: 3 }, "choices.0"],
  ["/v1/completions", { prompt: "hi", max_tokens: 3 }, "choices.0"],
  ["/v1/responses", { input: "hi", max_output_tokens: 3 }, "incomplete_details"],
  ["/v1/messages", { messages: [message], max_tokens: 3 }, ""],
];

const CUT_OFF = [...eventsOf("Once").slice(0, -1), { ...DONE, reason: "length" as const }];

describe.each(ROUTES)("limited_by in an answer of %s", (path, body, where) => {
  test("names the limit that cut off the answer", async () => {
    const app = testApp({ events: CUT_OFF });
    const answer: unknown = await (await app.post(path, { model: "fake", ...body })).json();
    expect(answer).toHaveProperty([...where.split(".").filter(Boolean), "limited_by"], "max_tokens");
  });

  test("is also in the stream", async () => {
    const app = testApp({ events: CUT_OFF });
    const text = await (await app.post(path, { model: "fake", ...body, stream: true })).text();
    expect(text.match(/"limited_by":"max_tokens"/g)).toHaveLength(1);
  });

  test("is absent if the answer ended by itself", async () => {
    for (const stream of [false, true]) {
      const app = testApp({ events: eventsOf("Once") });
      const answer = await app.post(path, { model: "fake", ...body, stream });
      expect(await answer.text()).not.toContain("limited_by");
    }
  });
});

test("names num_predict besides Ollama's done_reason", async () => {
  const app = testApp({ events: CUT_OFF });
  const options = { num_predict: 3 };
  const answer = await app.post("/ollama/api/generate", {
    model: "fake",
    prompt: "hi",
    options,
    stream: false,
  });
  expect(await answer.json()).toMatchObject({ done_reason: "length", limited_by: "max_tokens" });
});

test("names the native API's default limit", async () => {
  const usage = { ...DONE.usage, completionTokens: 512 };
  const app = testApp({ events: [{ type: "start" }, { ...DONE, reason: "length", usage }] });
  const answer = await app.post("/api/chat", { model: "fake", messages: [message] });
  expect(await answer.json()).toMatchObject({ done_reason: "length", limited_by: "default" });
});

test("the other APIs have no default limit", async () => {
  for (const [path, body] of [
    ["/v1/chat/completions", { messages: [message] }],
    ["/v1/responses", { input: "hi" }],
    ["/ollama/api/chat", { messages: [message], stream: false }],
  ] as const) {
    const app = testApp();
    await app.post(path, { model: "fake", ...body });
    expect(app.lastRequest()).not.toHaveProperty("maxTokens");
  }
});
