import { describe, expect, test } from "vitest";
import { PLAIN_TEXT } from "./recorded-events.ts";
import { testApp } from "../../support/test-app.ts";

const messages = [{ role: "user", content: "hi" }];

describe("the prefix /ollama", () => {
  test("serves the other APIs as without the prefix", async () => {
    const all = testApp({ events: PLAIN_TEXT });
    const chat = await all.post("/ollama/v1/chat/completions", { model: "fake", messages });
    expect(await chat.json()).toMatchObject({ choices: [{ message: { content: "Hello world" } }] });
    const message = await all.post("/ollama/v1/messages", { model: "fake", max_tokens: 9, messages });
    expect(await message.json()).toMatchObject({ content: [{ type: "text", text: "Hello world" }] });
    const models = await all.app.request("/ollama/v1/models");
    expect(await models.json()).toMatchObject({ object: "list", data: [{ id: "fake" }] });
    const one = await all.app.request("/ollama/v1/models/fake");
    expect(await one.json()).toMatchObject({ id: "fake" });
  });

  test("keeps the error format of each API", async () => {
    const all = testApp();
    const missing = await all.post("/ollama/v1/chat/completions", { model: "none", messages });
    expect(await missing.json()).toMatchObject({ error: { code: "model_not_found", param: null } });
    const message = await all.post("/ollama/v1/messages", { model: "fake" });
    expect(await message.json()).toMatchObject({ type: "error", error: { type: "invalid_request_error" } });
    const ollama = await all.post("/ollama/api/none", {});
    expect(await ollama.json()).toEqual({ error: expect.any(String) });
  });

  test("loads a model on disk that a request names", async () => {
    const all = testApp();
    await all.post("/v1/chat/completions", { model: "fake", messages });
    await all.post("/ollama/v1/chat/completions", { model: "fake", messages });
    await all.post("/ollama/v1/embeddings", { model: "fake", input: "hi" });
    expect(all.models.residencies).toEqual([undefined, {}, {}]);
  });

  test("loads the model for token-ID prompts, embeddings and reranking", async () => {
    const all = testApp();
    await all.post("/v1/completions", { model: "fake", prompt: [1, 2] });
    expect(new Set(all.models.residencies.splice(0))).toEqual(new Set([undefined]));
    await all.post("/ollama/v1/completions", { model: "fake", prompt: [1, 2] });
    await all.post("/ollama/v1/embeddings", { model: "fake", input: [1, 2] });
    await all.post("/ollama/v1/rerank", { model: "fake", query: "a", documents: ["b"] });
    expect(all.models.residencies.length).toBeGreaterThanOrEqual(3);
    for (const residency of all.models.residencies) expect(residency).toEqual({});
  });
});
