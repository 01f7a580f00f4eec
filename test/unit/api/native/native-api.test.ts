import { describe, expect, test } from "vitest";
import { ServiceError } from "../../../../src/errors/service-error.ts";
import { testApp } from "../../../support/test-app.ts";
import { endless } from "../../inference/inference-setup.ts";

describe("POST /api/embeddings", () => {
  test("returns one vector per text", async () => {
    const all = testApp();
    expect(await (await all.post("/api/embeddings", { input: "abc" })).json()).toEqual({
      model: "fake",
      embeddings: [[3, 0]],
      dimensions: 2,
      total_tokens: 3,
    });
    expect(await (await all.post("/api/embeddings", { input: ["a", "bb"] })).json()).toMatchObject({
      embeddings: [
        [1, 0],
        [2, 0],
      ],
      total_tokens: 3,
    });
    expect(all.metrics.finished).toEqual(["embeddings", "embeddings"]);
  });
});

describe("errors", () => {
  test.for<[string, string, unknown, string, RegExp]>([
    ["no prompt", "/api/generate", {}, "invalid_parameter", /^prompt:/],
    ["a prompt that is not text", "/api/generate", { prompt: 1 }, "invalid_parameter", /^prompt:/],
    [
      "a fraction of a token",
      "/api/generate",
      { prompt: "", max_tokens: 1.5 },
      "invalid_parameter",
      /^max_tokens:/,
    ],
    ["no token at all", "/api/generate", { prompt: "", max_tokens: 0 }, "invalid_parameter", /^max_tokens:/],
    [
      "a temperature below 0",
      "/api/generate",
      { prompt: "", temperature: -1 },
      "invalid_parameter",
      /^temperature:/,
    ],
    [
      "no repeat_penalty at all",
      "/api/generate",
      { prompt: "", repeat_penalty: 0 },
      "invalid_parameter",
      /^repeat_penalty:/,
    ],
    ["top_p above 1", "/api/generate", { prompt: "", top_p: 1.1 }, "invalid_parameter", /^top_p:/],
    ["a stop that is not a list", "/api/generate", { prompt: "", stop: "x" }, "invalid_parameter", /^stop:/],
    ["an empty stop", "/api/generate", { prompt: "", stop: ["a", ""] }, "invalid_parameter", /^stop\.1:/],
    ["an unknown format", "/api/generate", { prompt: "", format: "xml" }, "invalid_parameter", /^format:/],
    ["no messages", "/api/chat", {}, "invalid_parameter", /^messages:/],
    ["an empty conversation", "/api/chat", { messages: [] }, "invalid_parameter", /^messages:/],
    [
      "an unknown role",
      "/api/chat",
      { messages: [{ role: "robot", content: "" }] },
      "invalid_parameter",
      /^messages\.0\.role:/,
    ],
    [
      "a message without content",
      "/api/chat",
      { messages: [{ role: "user", content: "a" }, { role: "user" }] },
      "invalid_parameter",
      /^messages\.1\.content:/,
    ],
    [
      "an invalid image",
      "/api/chat",
      { messages: [{ role: "user", content: "", images: ["aGVsbG8="] }] },
      "invalid_parameter",
      /^messages\.0\.images\.0:/,
    ],
    [
      "an image by its URL",
      "/api/generate",
      { prompt: "", images: ["https://example.org/a.png"] },
      "invalid_parameter",
      /^images\.0:.*does not fetch URLs/,
    ],
    ["no input", "/api/embeddings", {}, "invalid_parameter", /^input:/],
    ["an empty batch", "/api/embeddings", { input: [] }, "invalid_parameter", /^input:/],
    ["an empty text", "/api/embeddings", { input: ["a", ""] }, "invalid_parameter", /^input\.1: must not/],
    ["a batch of other things", "/api/embeddings", { input: ["a", 1] }, "invalid_parameter", /^input\.1:/],
    ["broken JSON", "/api/chat", "{", "invalid_json", /JSON/],
  ])("rejects %s", async ([, path, body, code, message]) => {
    const answer = await testApp().post(path, body);
    expect(answer.status).toBe(400);
    expect(await answer.json()).toEqual({
      error: { type: "invalid_request", code, message: expect.stringMatching(message) },
    });
  });

  test("returns 404 for an unknown model", async () => {
    const answer = await testApp().post("/api/generate", { model: "other", prompt: "hi" });
    expect(answer.status).toBe(404);
    expect(await answer.json()).toMatchObject({ error: { type: "not_found", code: "model_not_found" } });
  });

  test("a failure before the first delta sets the HTTP status, streamed or not", async () => {
    const all = testApp();
    all.engine.script = async function* () {
      if (all.engine.requests.length > 0) throw new ServiceError("context_length_exceeded", "9 of 8 tokens.");
      yield { type: "start" };
    };
    const answer = await all.post("/api/chat", { messages: [{ role: "user", content: "hi" }], stream: true });
    expect(answer.status).toBe(400);
    expect(await answer.json()).toMatchObject({ error: { code: "context_length_exceeded" } });
  });

  test("a full queue returns 503 with Retry-After", async () => {
    const all = testApp({ slots: 1, config: { models: { queue_size: 0 } } });
    all.engine.script = endless;
    const first = await all.post("/api/generate", { prompt: "hi", stream: true });
    const second = await all.post("/api/generate", { prompt: "hi" });
    expect(second.status).toBe(503);
    expect(Number(second.headers.get("retry-after"))).toBeGreaterThan(0);
    expect(await second.json()).toMatchObject({ error: { type: "overloaded", code: "overloaded" } });
    await first.body?.cancel();
  });
});
