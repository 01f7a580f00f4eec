import { describe, expect, test } from "vitest";
import { ABLE, testApp } from "../../../support/test-app.ts";
import { PLAIN_TEXT, THINKING_AND_TOOLS, WITH_LOGPROBS } from "../recorded-events.ts";
import { experimentResultSchema } from "../../../../src/api/wire/native.ts";

const messages = [{ role: "user", content: "hi" }];

describe("POST /api/experiment", () => {
  test("returns every token, the settings and the environment", async () => {
    const app = testApp({ events: WITH_LOGPROBS });
    const answer = await app.post("/api/experiment", { messages, temperature: 0 });
    expect(answer.status).toBe(200);
    const result = experimentResultSchema.parse(await answer.json());
    expect(result).toMatchObject({
      model: "fake",
      text: "Hello world",
      done_reason: "stop",
      where: "daemon",
      machine: "a machine of this test",
      engine_sha256: "e".repeat(64),
      sampling: { temperature: 0, top_p: 0.9, top_k: 40, seed: 0 },
    });
    expect(result.tokens.map(({ token }) => token).join("")).toBe("Hello world");
    expect(result.tokens[0]).toMatchObject({ logprob: -0.5, top: [{ id: 120, token: "x", logprob: -1 }] });
  });

  test("uses seed 0, five alternatives, and no cached prompt by default", async () => {
    const app = testApp({ events: PLAIN_TEXT });
    await app.post("/api/experiment", { messages });
    expect(app.lastRequest()).toMatchObject({ logprobs: 5, cachePrompt: false, sampling: { seed: 0 } });
    await app.post("/api/experiment", { messages, seed: 7, alternatives: 0 });
    expect(app.lastRequest()).toMatchObject({ logprobs: 0, sampling: { seed: 7 } });
  });

  test("continues a prompt without the chat template", async () => {
    const app = testApp({ events: PLAIN_TEXT });
    await app.post("/api/experiment", { prompt: "Once upon" });
    expect(app.lastRequest().input).toEqual({ kind: "prompt", prompt: "Once upon" });
  });

  test.each([{ prompt: "Once upon" }, { messages }])(
    "runs on the model that it names (%j)",
    async (input) => {
      const app = testApp({ events: PLAIN_TEXT });
      expect((await app.post("/api/experiment", { ...input, model: "fake" })).status).toBe(200);
      const answer = await app.post("/api/experiment", { ...input, model: "another" });
      expect(await answer.json()).toMatchObject({ error: { code: "model_not_found" } });
    },
  );

  test("returns reasoning and tool calls", async () => {
    const app = testApp({ events: THINKING_AND_TOOLS, model: ABLE });
    const tools = [{ function: { name: "get_weather" } }, { function: { name: "get_time" } }];
    const answer = await app.post("/api/experiment", { messages, tools, think: true });
    expect(await answer.json()).toMatchObject({
      thinking: "The user wants the weather.",
      tool_calls: [{ function: { name: "get_weather" } }, { function: { name: "get_time" } }],
      done_reason: "tool_calls",
    });
  });

  test.each([
    ["neither messages nor a prompt", {}],
    ["both messages and a prompt", { messages, prompt: "hi" }],
    ["more alternatives than there are", { messages, alternatives: 21 }],
    ["a random seed", { messages, seed: -1 }],
  ])("rejects %s", async (_what, body) => {
    const answer = await testApp({ events: PLAIN_TEXT }).post("/api/experiment", body);
    expect(answer.status).toBe(400);
    expect(await answer.json()).toMatchObject({ error: { code: "invalid_parameter" } });
  });
});
