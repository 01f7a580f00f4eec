import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { z } from "zod";
import { temporaryFolder, writeModel } from "../support/engine-fixture.ts";
import { NATS_SERVER } from "../support/nats-server.ts";
import type { TestDaemon } from "../support/start-daemon.ts";
import { FLEET_MODEL, fleetOf, TestFleet } from "../support/test-fleet.ts";
import { tinyBert } from "../support/tiny-models.ts";

const KEY = "key-of-the-entrance";
/** Requests per minute that the entrance with a limit takes, those of the test's own looks at it included. */
const LIMIT = 12;
const EMBEDDINGS = z.object({ data: z.array(z.object({ embedding: z.array(z.number()) })) });
const TOKENS = z.object({ tokens: z.array(z.int()) });

/** An answer of a daemon's API. */
async function post(
  { url }: TestDaemon,
  path: string,
  body: object,
  headers: Record<string, string> = {},
): Promise<{ status: number; body: Record<string, unknown>; text: string }> {
  const response = await fetch(`${url}${path}`, {
    method: "POST",
    headers: { "content-type": "application/json", ...headers },
    body: JSON.stringify(body),
  });
  const text = await response.text();
  return { status: response.status, body: JSON.parse(text), text };
}

function chat(further: object = {}): object {
  const messages = [{ role: "user", content: "once upon a time" }];
  return { model: FLEET_MODEL, messages, max_tokens: 4, temperature: 0, ...further };
}

/** The machine that has the models is as strict to its own clients as can be: none of it is for the fleet. */
describe.skipIf(NATS_SERVER === null)("the entrance of a fleet", () => {
  let fleet: TestFleet;
  let attic: TestDaemon;
  let desk: TestDaemon;

  beforeAll(async () => {
    const folder = temporaryFolder();
    writeModel(folder, "far-embedder", tinyBert());
    writeModel(folder, "far-reranker", tinyBert({ rerank: true }));
    fleet = await TestFleet.start();
    [attic, desk] = await Promise.all([
      fleet.join("attic", {
        folders: [folder],
        env: {
          SERVICE_API_KEYS: "key-of-the-attic",
          SERVICE_HTTP_RATE_LIMIT: "1",
          SERVICE_ENGINE_REQUEST_TIMEOUT: "400ms",
          SERVICE_MODELS_KEEP_ALIVE: "-1",
        },
      }),
      fleet.join("desk", { hasModel: false }),
    ]);
    await fleet.complete(desk, 2, 1);
  });
  afterAll(async () => await fleet.stop());

  test("alone asks for an API key, and machines need none of each other", async () => {
    const locked = await fleet.join("locked", { hasModel: false, env: { SERVICE_API_KEYS: KEY } });
    expect((await post(locked, "/v1/chat/completions", chat())).status).toBe(401);
    const theirs = { authorization: "Bearer key-of-the-attic" };
    expect((await post(locked, "/v1/chat/completions", chat(), theirs)).status).toBe(401);
    const headers = { authorization: `Bearer ${KEY}` };
    await expect
      .poll(async () => (await post(locked, "/v1/chat/completions", chat(), headers)).status, {
        timeout: 8000,
      })
      .toBe(200);
    expect((await post(attic, "/v1/chat/completions", chat())).status).toBe(401);
    await locked.stop();
  });

  test("alone counts requests per minute", async () => {
    const limited = await fleet.join("limited", {
      hasModel: false,
      env: { SERVICE_HTTP_RATE_LIMIT: `${LIMIT}` },
    });
    await fleet.complete(desk, 3, 1);
    await sleep(1000);
    const statuses: number[] = [];
    for (let request = 0; request <= LIMIT; request += 1)
      statuses.push((await post(limited, "/v1/chat/completions", chat())).status);
    expect(statuses).toEqual([...Array.from({ length: LIMIT }, () => 200), 429]);
    // The one with the model would have answered a single request in this minute.
    for (let request = 0; request < 3; request += 1)
      expect((await post(desk, "/v1/chat/completions", chat())).status).toBe(200);
    await limited.stop();
  });

  test("alone says how long a request may take", async () => {
    const long = chat({ max_tokens: 1900, ignore_eos: true });
    const hasty = await fleet.join("hasty", {
      hasModel: false,
      env: { SERVICE_ENGINE_REQUEST_TIMEOUT: "200ms" },
    });
    await fleet.complete(desk, 3, 1);
    await sleep(1000);
    const [ended, complete] = [
      await post(hasty, "/v1/chat/completions", long),
      await post(desk, "/v1/chat/completions", long),
    ];
    expect(ended).toMatchObject({ status: 500, body: { error: { code: "deadline_exceeded" } } });
    expect(ended.text).toContain("longer than 0.2 s");
    expect(complete).toMatchObject({ status: 200, body: { usage: { completion_tokens: 1900 } } });
    await hasty.stop();
  });

  test("passes embeddings, reranking, scores and tokens on", async () => {
    const embedded = await post(desk, "/v1/embeddings", { model: "far-embedder", input: ["hello", "world"] });
    expect(embedded.status).toBe(200);
    const { data } = EMBEDDINGS.parse(embedded.body);
    expect(data.map(({ embedding }) => embedding.length)).toEqual([32, 32]);
    const length = Math.hypot(...(data[0]?.embedding ?? []));
    expect(length).toBeCloseTo(1, 3);
    const ranked = await post(desk, "/v1/rerank", {
      model: "far-reranker",
      query: "hello",
      documents: ["the cat", "world"],
    });
    expect(ranked.status).toBe(200);
    expect(ranked.body["results"]).toHaveLength(2);
    const tokenized = await post(desk, "/tokenize", { model: FLEET_MODEL, content: "once upon a time" });
    const { tokens } = TOKENS.parse(tokenized.body);
    expect(tokens.length).toBeGreaterThan(2);
    const back = await post(desk, "/detokenize", { model: FLEET_MODEL, tokens });
    expect(back.body["content"]).toBe("once upon a time");
    const scored = await post(desk, "/v1/completions", {
      model: FLEET_MODEL,
      prompt: "once upon a time",
      echo: true,
      max_tokens: 0,
      logprobs: 1,
    });
    expect(scored.status).toBe(200);
    expect(scored.text).toContain("token_logprobs");
  });

  test("says where a model is that it cannot load itself", async () => {
    const { status, text } = await post(desk, "/api/models/load", { alias: FLEET_MODEL });
    expect(status).toBe(404);
    expect(text).toContain("is on other machines of the fleet (attic)");
  });

  test("says soon that a request that has not begun may be sent again when the NATS server is gone", async () => {
    attic.kill("SIGSTOP");
    const asked = post(desk, "/v1/chat/completions", chat());
    await sleep(200);
    await fleet.nats.kill("SIGKILL");
    const goneAt = performance.now();
    try {
      expect(await asked).toMatchObject({ status: 503, body: { error: { code: "fleet_unreachable" } } });
      const waited = performance.now() - goneAt;
      expect(waited).toBeGreaterThan(2000);
      expect(waited).toBeLessThan(8000);
    } finally {
      attic.kill("SIGCONT");
      await fleet.nats.restart();
    }
    await expect.poll(async () => (await fleetOf(desk)).machines.length, { timeout: 20_000 }).toBe(2);
  });

  test("says so as soon of an answer of which its client has nothing yet", async () => {
    // The model is loaded then, and text comes at once.
    expect((await post(desk, "/v1/chat/completions", chat())).status).toBe(200);
    const asked = post(desk, "/v1/chat/completions", chat({ max_tokens: 1900, ignore_eos: true }));
    await sleep(400);
    await fleet.nats.kill("SIGKILL");
    const goneAt = performance.now();
    try {
      expect(await asked).toMatchObject({ status: 503, body: { error: { code: "fleet_unreachable" } } });
      expect(performance.now() - goneAt).toBeLessThan(8000);
    } finally {
      await fleet.nats.restart();
    }
    await expect.poll(async () => (await fleetOf(desk)).machines.length, { timeout: 20_000 }).toBe(2);
  });
});
