import { describe, expect, test } from "vitest";
import { fakeModel } from "../../../support/fake-models.ts";
import { ABLE, testApp } from "../../../support/test-app.ts";
import { PLAIN_TEXT } from "../recorded-events.ts";

async function get(path: string, model = ABLE): Promise<unknown> {
  return await (await testApp({ model }).app.request(path)).json();
}

describe("GET /props", () => {
  test("returns the properties of a model", async () => {
    const model = fakeModel({ contextSize: 2048, slots: 3, path: "/m.gguf" });
    expect(await get("/props", model)).toMatchObject({
      default_generation_settings: { n_ctx: 2048, params: { temperature: 0.7, n_predict: -1, min_p: 0.05 } },
      total_slots: 3,
      model_alias: "fake",
      model_path: "/m.gguf",
      modalities: { vision: expect.any(Boolean), audio: expect.any(Boolean) },
      chat_template: expect.any(String),
      build_info: expect.stringMatching(/^b\d+/),
      is_sleeping: false,
    });
    expect(await get("/props", fakeModel({ state: "available" }))).toMatchObject({ is_sleeping: true });
  });

  test("returns 404 for an unknown model", async () => {
    expect(await get("/props?model=none")).toMatchObject({ error: { code: 404, type: "not_found_error" } });
  });
});

describe("/slots", () => {
  test("lists the slots, and returns 503 with fail_on_no_slot if none is free", async () => {
    const model = fakeModel({ contextSize: 64 });
    const slot = { id: 0, n_ctx: 64, speculative: false, is_processing: false, n_prompt_tokens: 12 };
    expect(await get("/slots", model)).toEqual([slot]);
    const app = testApp({ model });
    app.models.slots.list = async () => ({
      slots: [{ id: 0, tokens: 1, isBusy: true, lastUsed: 1 }],
      saved: [],
    });
    expect((await app.app.request("/slots")).status).toBe(200);
    const full = await app.app.request("/slots?fail_on_no_slot=1");
    expect(full.status).toBe(503);
    expect(await full.json()).toMatchObject({ error: { code: 503, type: "unavailable_error" } });
  });

  test.each([
    ["save", { id_slot: 1, filename: "a.bin", n_saved: 12, n_written: 3456, timings: { save_ms: 7.8 } }],
    [
      "restore",
      { id_slot: 1, filename: "a.bin", n_restored: 12, n_read: 3456, timings: { restore_ms: 7.8 } },
    ],
    ["erase", { id_slot: 1, n_erased: 12 }],
  ])("accepts the action %s", async (action, expected) => {
    const answer = await testApp().post(`/slots/1?action=${action}`, { filename: "a.bin" });
    expect(await answer.json()).toEqual(expected);
  });

  test("passes any slot number on, so that each nonexistent slot gets the same error", async () => {
    const app = testApp();
    expect((await app.post("/slots/1000000000000?action=erase", {})).status).toBe(200);
    expect(app.models.slotCalls).toEqual([{ model: "fake", slot: 1e12 }]);
  });

  test("erases without a body, but requires one to save", async () => {
    const { app } = testApp();
    const erased = await app.request("/slots/1?action=erase", { method: "POST" });
    expect(await erased.json()).toEqual({ id_slot: 1, n_erased: 12 });
    const saved = await app.request("/slots/1?action=save", { method: "POST" });
    expect(await saved.json()).toMatchObject({ error: { code: 400, message: "filename: is missing." } });
  });

  test.each([
    ["a path for a name", "/slots/0?action=save", { filename: "a/b" }, /^filename must/],
    ["no action", "/slots/1", { filename: "a" }, /action/],
    ["no file name", "/slots/1?action=save", {}, /filename/],
    ["no slot", "/slots/x?action=erase", {}, /slot/],
  ])("rejects a request with %s", async (_what, path, body, message) => {
    const answer = await testApp().post(path, body);
    expect(await answer.json()).toMatchObject({
      error: { code: 400, message: expect.stringMatching(message) },
    });
  });
});

describe("GET /lora-adapters", () => {
  test("lists the adapters of a model", async () => {
    const adapters = [
      { path: "/a.gguf", scale: 1, name: "a" },
      { path: "/b.gguf", scale: 0.5, name: "b" },
    ];
    expect(await get("/lora-adapters", fakeModel({ adapters }))).toEqual([
      { id: 0, path: "/a.gguf", scale: 1 },
      { id: 1, path: "/b.gguf", scale: 0.5 },
    ]);
  });
});

test("POST /props is rejected with an alternative", async () => {
  const answer = await testApp().post("/props", {});
  expect([answer.status, await answer.json()]).toEqual([
    501,
    {
      error: {
        code: 501,
        type: "not_supported_error",
        message: expect.stringMatching(/send settings with each request.*POST \/api\/models\/load/),
      },
    },
  ]);
});

function sum(parts: readonly number[], power: number): number {
  return parts.reduce((total, part) => total + Math.abs(part) ** power, 0);
}

describe("POST /embedding", () => {
  const model = fakeModel({ gguf: { ...fakeModel().gguf, purpose: "embed" } });
  const embed = async (body: object, path = "/embedding"): Promise<unknown> =>
    await (await testApp({ model }).post(path, body)).json();

  /** Returns the only vector, with this normalization. */
  const vector = async (norm: number): Promise<number[]> =>
    Object(await embed({ content: "a", embd_normalize: norm }))[0].embedding[0];

  test("returns a nested vector per text for content and input", async () => {
    const vectors: unknown = await embed({ content: ["a", "b"] });
    expect(vectors).toEqual([
      { index: 0, embedding: [expect.any(Array)] },
      { index: 1, embedding: [expect.any(Array)] },
    ]);
    expect(await embed({ input: [97] }, "/embeddings")).toMatchObject([{ index: 0 }]);
  });

  test("normalizes by embd_normalize", async () => {
    expect(sum(await vector(1), 1)).toBeCloseTo(1);
    expect(sum(await vector(2), 2)).toBeCloseTo(1);
    expect(sum(await vector(3), 3)).toBeCloseTo(1);
    expect(Math.max(...(await vector(0)).map(Math.abs))).toBeCloseTo(32_760);
  });

  test.each([
    ["no text", {}, /content/],
    ["vectors as they are", { content: "a", embd_normalize: -1 }, /embd_normalize/],
  ])("rejects %s", async (_what, body, message) => {
    expect(await embed(body)).toMatchObject({
      error: { code: 400, message: expect.stringMatching(message) },
    });
  });
});

describe("POST /rerank", () => {
  const model = fakeModel({ gguf: { ...fakeModel().gguf, purpose: "rerank" } });
  const rerank = async (body: object, path = "/rerank"): Promise<unknown> =>
    await (await testApp({ model }).post(path, { query: "q", ...body })).json();

  test("ranks documents by raw scores, and texts in TEI's format", async () => {
    const documents = ["a", "bb", "ccc"];
    const { results } = Object(await rerank({ documents, top_n: 2 }));
    expect(results).toHaveLength(2);
    expect(results[0].relevance_score).toBeGreaterThanOrEqual(results[1].relevance_score);
    const tei = await rerank({ texts: documents, return_text: true }, "/reranking");
    const best = Object(results[0]);
    expect(Object(tei)[0]).toEqual({
      index: best.index,
      score: best.relevance_score,
      text: documents[best.index],
    });
    expect(await rerank({})).toMatchObject({ error: { code: 400 } });
  });
});

/** Returns the thinking settings of a request. */
function thinkingSettings({ input, reasoningBudget }: Record<string, Record<string, unknown>>): unknown {
  return { thinking: input?.["thinking"], variables: input?.["templateVariables"], reasoningBudget };
}

describe("POST /apply-template", () => {
  test.each([
    { reasoning_effort: "high" },
    { reasoning_effort: "none" },
    { enable_thinking: true },
    { enable_thinking: true, chat_template_kwargs: { enable_thinking: false, tone: "dry" } },
    { thinking_budget_tokens: 8 },
  ])("applies thinking settings as POST /v1/chat/completions does with %j", async (fields) => {
    const app = testApp();
    const messages = [{ role: "user", content: "hi" }];
    await app.post("/v1/chat/completions", { messages, ...fields });
    const requested = Object(app.lastRequest());
    await app.post("/apply-template", { messages, ...fields });
    const applied = Object(app.lastRequest());
    expect(thinkingSettings(applied)).toEqual(thinkingSettings(requested));
    expect(JSON.stringify(thinkingSettings(applied))).not.toBe("{}");
  });

  test("returns the prompt of the engine without the tokenizer's BOS token", async () => {
    const details = { prompt: "<s>[hi]", slot: 0, tokensInCache: 1, truncated: false };
    const events = PLAIN_TEXT.map((event) =>
      event.type === "done" ? Object.assign({ details }, event) : event,
    );
    const app = testApp({ events });
    const tools = [{ type: "function", function: { name: "f" } }];
    const answer = await app.post("/apply-template", {
      messages: [{ role: "user", content: [{ type: "text", text: "hi" }] }],
      tools,
      chat_template_kwargs: { enable_thinking: true },
    });
    expect(await answer.json()).toEqual({ prompt: "[hi]" });
    expect(app.lastRequest()).toMatchObject({
      maxTokens: 1,
      input: { kind: "chat", tools: [{ name: "f" }], thinking: true },
    });
    const messages = [{ role: "user", content: "hi" }];
    await app.post("/apply-template", { messages, tools, tool_choice: "none" });
    expect(app.lastRequest()).toMatchObject({ input: { tools: [] } });
    const refused = await app.post("/apply-template", { messages, add_generation_prompt: false });
    expect([refused.status, await refused.text()]).toEqual([
      400,
      expect.stringContaining("add_generation_prompt"),
    ]);
  });
});

test("POST /lora-adapters sets the scales of listed adapters, and turns the others off", async () => {
  const adapters = [
    { path: "/a.gguf", scale: 1, name: "a" },
    { path: "/b.gguf", scale: 0.5, name: "b" },
  ];
  const tested = testApp({ model: fakeModel({ adapters, isDefault: true }) });
  const answer = await tested.post("/lora-adapters", [{ id: 1, scale: 0.25 }]);
  expect([answer.status, await answer.json()]).toEqual([200, { success: true }]);
  const after = await tested.app.request("/lora-adapters");
  expect(await after.json()).toMatchObject([{ scale: 0 }, { scale: 0.25 }]);
  expect((await tested.post("/lora-adapters", [{ id: 2, scale: 1 }])).status).toBe(400);
  expect((await tested.post("/lora-adapters", { id: 1 })).status).toBe(400);
});
