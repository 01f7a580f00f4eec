import { describe, expect, test } from "vitest";
import { PLAIN_TEXT } from "./recorded-events.ts";
import { testApp } from "../../support/test-app.ts";

const messages = [{ role: "user", content: "hi" }];

describe("under the base of Ollama", () => {
  test("the other APIs answer as they do under their own", async () => {
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

  test("their errors have their own shapes, and Ollama's its own", async () => {
    const all = testApp();
    const missing = await all.post("/ollama/v1/chat/completions", { model: "none", messages });
    expect(await missing.json()).toMatchObject({ error: { code: "model_not_found", param: null } });
    const message = await all.post("/ollama/v1/messages", { model: "fake" });
    expect(await message.json()).toMatchObject({ type: "error", error: { type: "invalid_request_error" } });
    const ollama = await all.post("/ollama/api/none", {});
    expect(await ollama.json()).toEqual({ error: expect.any(String) });
  });

  test("a model that is on disk is loaded by the request that names it", async () => {
    const all = testApp();
    await all.post("/v1/chat/completions", { model: "fake", messages });
    await all.post("/ollama/v1/chat/completions", { model: "fake", messages });
    await all.post("/ollama/v1/embeddings", { model: "fake", input: "hi" });
    expect(all.models.residencies).toEqual([undefined, {}, {}]);
  });

  test("token ids as a prompt or to embed, and reranking, load the model too", async () => {
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
