import { beforeAll, describe, expect, test } from "vitest";
import { embeddingsAnswerSchema } from "../../src/api/native/token-routes.ts";
import { ENDLESS_LIST } from "../support/certain-requests.ts";
import { likeness } from "../support/likeness.ts";
import { postJson } from "../support/post-json.ts";
import { sharedDaemon } from "../support/shared-daemon.ts";
import type { TestDaemon } from "../support/start-daemon.ts";

let daemon: TestDaemon;

beforeAll(async () => {
  daemon = await sharedDaemon();
});

function post(body: object): Promise<Response> {
  return postJson(`${daemon.url}/api/embeddings`, body);
}

async function embed(input: string | string[]) {
  const response = await post({ input });
  expect(response.status).toBe(200);
  return embeddingsAnswerSchema.parse(await response.json());
}

describe("POST /api/embeddings", () => {
  test("returns a vector of length 1", async () => {
    const { model, embeddings, dimensions, total_tokens: tokens } = await embed("The sun rises.");
    expect(model).toBe("daybreak-mini");
    expect(embeddings).toHaveLength(1);
    expect(embeddings[0]).toHaveLength(dimensions);
    expect(Math.hypot(...embeddings[0]!)).toBeCloseTo(1, 3);
    expect(tokens).toBeGreaterThan(1);
  });

  test("returns a vector per text in order, also for more texts than slots", async () => {
    const texts = Array.from({ length: 12 }, (_, index) => `Text number ${index}: ${"word ".repeat(index)}`);
    const batch = await embed(texts);
    expect(batch.embeddings).toHaveLength(12);
    const seventh = await embed(texts[7]!);
    expect(likeness(batch.embeddings[7]!, seventh.embeddings[0]!)).toBeCloseTo(1, 3);
    expect(likeness(batch.embeddings[1]!, seventh.embeddings[0]!)).toBeLessThan(0.999);
    const single = await Promise.all(texts.map(async (text) => (await embed(text)).total_tokens));
    expect(batch.total_tokens).toBe(single.reduce((sum, tokens) => sum + tokens, 0));
  });

  test("works during a generation", async () => {
    const generation = postJson(`${daemon.url}/api/generate`, {
      prompt: "hi",
      max_tokens: 64,
      format: ENDLESS_LIST,
    });
    expect((await embed(["a", "b", "c"])).embeddings).toHaveLength(3);
    expect((await generation).status).toBe(200);
  });

  test.for<[string, object, number, string]>([
    ["no input", {}, 400, "invalid_parameter"],
    ["no text in the batch", { input: [] }, 400, "invalid_parameter"],
    ["an unknown model", { input: "hi", model: "no-such-model" }, 404, "model_not_found"],
  ])("refuses %s", async ([, body, status, code]) => {
    const response = await post(body);
    expect(response.status).toBe(status);
    expect(await response.json()).toMatchObject({ error: { code } });
  });
});
