import { describe, expect, test } from "vitest";
import { ServiceError } from "../../../../src/errors/service-error.ts";
import { testApp } from "../../../support/test-app.ts";

describe("/api/embed", () => {
  test("returns a vector per text, token counts and durations in nanoseconds", async () => {
    const answer = await testApp().post("/ollama/api/embed", { model: "fake", input: ["a", "bb"] });
    expect(await answer.json()).toEqual({
      model: "fake",
      embeddings: [
        [1, 0],
        [2, 0],
      ],
      total_duration: expect.any(Number),
      load_duration: expect.any(Number),
      prompt_eval_count: 3,
    });
  });

  test("truncates vectors to the requested dimensions and normalizes them", async () => {
    const answer = await testApp().post("/ollama/api/embed", { model: "fake", input: "bb", dimensions: 1 });
    expect(await answer.json()).toMatchObject({ embeddings: [[1]] });
    const tooMany = await testApp().post("/ollama/api/embed", { model: "fake", input: "bb", dimensions: 3 });
    expect(tooMany.status).toBe(400);
  });

  test("truncates texts that are too long, unless truncate is false", async () => {
    const all = testApp();
    const embed = all.engine.embed.bind(all.engine);
    all.engine.embed = (text, signal) =>
      text.length > 60
        ? Promise.reject(new ServiceError("context_length_exceeded", "Too long."))
        : embed(text, signal);
    const body = { model: "fake", input: "x".repeat(200) };
    const cut = await all.post("/ollama/api/embed", body);
    expect(await cut.json()).toMatchObject({ embeddings: [[expect.any(Number), 0]] });
    expect((await all.post("/ollama/api/embed", { ...body, truncate: false })).status).toBe(400);
  });

  test("returns a vector for each text of a list, including empty ones", async () => {
    for (const [input, count] of [
      [["a", ""], 2],
      [[""], 1],
    ] as const) {
      const answer = await testApp().post("/ollama/api/embed", { model: "fake", input });
      expect(await answer.json()).toMatchObject({ embeddings: { length: count } });
    }
  });

  test.for([{ input: "" }, { input: [] }, {}])("returns no vectors for the empty input %j", async (more) => {
    const answer = await testApp().post("/ollama/api/embed", { model: "fake", ...more });
    expect(await answer.json()).toMatchObject({ embeddings: [] });
  });
});

test.for([
  ["bb", [2, 0]],
  ["", []],
] as const)("/api/embeddings for %j returns %j", async ([prompt, embedding]) => {
  const answer = await testApp().post("/ollama/api/embeddings", { model: "fake", prompt });
  expect(await answer.json()).toEqual({ embedding });
});
