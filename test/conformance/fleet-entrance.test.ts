import { afterAll, beforeAll, describe, expect, onTestFinished, test } from "vitest";
import { z } from "zod";
import { temporaryFolder, writeModel } from "../support/engine-fixture.ts";
import { listenToFrames } from "../support/listen-to-frames.ts";
import { NATS } from "../support/nats-server.ts";
import type { TestDaemon } from "../support/start-daemon.ts";
import { FLEET_MODEL, TestFleet } from "../support/test-fleet.ts";
import { tinyBert } from "../support/tiny-models.ts";

const KEY = "key-of-the-entrance";
/** Requests per minute that the entrance with a limit takes. */
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

/**
 * A request whose machine is lost waits for another one for half a minute; one whose client has nothing yet waits for the
 * NATS server for three seconds.
 */
const SOON_MS = 20_000;

/** The machine that has the models is as strict to its own clients as can be: none of it is for the fleet. */
describe.skipIf(NATS.isMissing)(`the entrance of a fleet${NATS.note}`, () => {
  let fleet: TestFleet;
  let attic: TestDaemon;
  let entrance: TestDaemon;

  beforeAll(async () => {
    const folder = temporaryFolder();
    writeModel(folder, "far-embedder", tinyBert());
    writeModel(folder, "far-reranker", tinyBert({ rerank: true }));
    fleet = await TestFleet.start();
    [attic, entrance] = await Promise.all([
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
    await together();
  });
  afterAll(async () => await fleet.stop());

  /** A further entrance, for the present test, which may be tried again. */
  async function visit(name: string, env: Record<string, string>): Promise<TestDaemon> {
    const daemon = await fleet.join(name, { hasModel: false, env });
    onTestFinished(async () => await daemon.stop());
    return daemon;
  }

  async function together(): Promise<void> {
    await fleet.complete(entrance, 2, 1);
  }

  async function restartNats(): Promise<void> {
    await fleet.nats.kill("SIGKILL");
    await fleet.nats.restart();
  }

  test("alone asks for an API key, and machines need none of each other", async () => {
    const locked = await visit("locked", { SERVICE_API_KEYS: KEY });
    expect((await post(locked, "/v1/chat/completions", chat())).status).toBe(401);
    const theirs = { authorization: "Bearer key-of-the-attic" };
    expect((await post(locked, "/v1/chat/completions", chat(), theirs)).status).toBe(401);
    const headers = { authorization: `Bearer ${KEY}` };
    await expect
      .poll(async () => (await post(locked, "/v1/chat/completions", chat(), headers)).status)
      .toBe(200);
    // Its own clients need its key, and may ask once a minute: on a second try that is over.
    expect([401, 429]).toContain((await post(attic, "/v1/chat/completions", chat())).status);
  });

  test("alone counts requests per minute", async () => {
    const limited = await visit("limited", { SERVICE_HTTP_RATE_LIMIT: `${LIMIT}` });
    // To ask it would count.
    await expect.poll(() => limited.logs()).toMatch(/"machine":"attic".*fleet: a machine has joined/);
    // At once, as there may be one more with every twelfth of a minute.
    const answers = await Promise.all(
      Array.from({ length: LIMIT + 1 }, async () => await post(limited, "/v1/chat/completions", chat())),
    );
    const statuses = answers.map(({ status }) => status).toSorted((a, b) => a - b);
    expect(statuses).toEqual([...Array.from({ length: LIMIT }, () => 200), 429]);
    // The one with the model would have answered a single request in this minute.
    for (let request = 0; request < 3; request += 1)
      expect((await post(entrance, "/v1/chat/completions", chat())).status).toBe(200);
  });

  test("alone says how long a request may take", async () => {
    const long = chat({ max_tokens: 1900, ignore_eos: true });
    const hasty = await visit("hasty", { SERVICE_ENGINE_REQUEST_TIMEOUT: "200ms" });
    await fleet.complete(hasty, 3, 1);
    const [ended, complete] = [
      await post(hasty, "/v1/chat/completions", long),
      await post(entrance, "/v1/chat/completions", long),
    ];
    expect(ended).toMatchObject({ status: 500, body: { error: { code: "deadline_exceeded" } } });
    expect(ended.text).toContain("longer than 0.2 s");
    expect(complete).toMatchObject({ status: 200, body: { usage: { completion_tokens: 1900 } } });
  });

  test("passes embeddings, reranking, scores and tokens on", async () => {
    const embedded = await post(entrance, "/v1/embeddings", {
      model: "far-embedder",
      input: ["hello", "world"],
    });
    expect(embedded.status).toBe(200);
    const { data } = EMBEDDINGS.parse(embedded.body);
    expect(data.map(({ embedding }) => embedding.length)).toEqual([32, 32]);
    const length = Math.hypot(...(data[0]?.embedding ?? []));
    expect(length).toBeCloseTo(1, 3);
    const ranked = await post(entrance, "/v1/rerank", {
      model: "far-reranker",
      query: "hello",
      documents: ["the cat", "world"],
    });
    expect(ranked.status).toBe(200);
    expect(ranked.body["results"]).toHaveLength(2);
    const tokenized = await post(entrance, "/tokenize", { model: FLEET_MODEL, content: "once upon a time" });
    const { tokens } = TOKENS.parse(tokenized.body);
    expect(tokens.length).toBeGreaterThan(2);
    const back = await post(entrance, "/detokenize", { model: FLEET_MODEL, tokens });
    expect(back.body["content"]).toBe("once upon a time");
    const scored = await post(entrance, "/v1/completions", {
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
    const { status, text } = await post(entrance, "/api/models/load", { alias: FLEET_MODEL });
    expect(status).toBe(404);
    expect(text).toContain("is on other machines of the fleet (attic)");
  });

  test("says soon that a request that has not begun may be sent again when the NATS server is gone", async () => {
    await together();
    const isAsked = Promise.withResolvers<void>();
    const spy = await listenToFrames(fleet, "call", "attic", entrance, () => isAsked.resolve());
    try {
      attic.kill("SIGSTOP");
      const asked = post(entrance, "/v1/chat/completions", chat());
      await Promise.race([isAsked.promise, asked]);
      const goneAt = performance.now();
      await fleet.nats.kill("SIGKILL");
      expect(await asked).toMatchObject({ status: 503, body: { error: { code: "fleet_unreachable" } } });
      const waited = performance.now() - goneAt;
      expect(waited).toBeGreaterThan(2000);
      expect(waited).toBeLessThan(SOON_MS);
    } finally {
      attic.kill("SIGCONT");
      await restartNats();
      await spy.close();
    }
    await together();
  });

  test("says so as soon of an answer of which its client has nothing yet", async () => {
    await together();
    // The first report says that it has begun, the second one has text.
    let reports = 0;
    const hasBegun = Promise.withResolvers<void>();
    const spy = await listenToFrames(fleet, "answer", "desk", entrance, ({ kind }) => {
      if (kind === "last" && (reports += 1) === 2) hasBegun.resolve();
    });
    try {
      const asked = post(entrance, "/v1/chat/completions", chat({ max_tokens: 1900, ignore_eos: true }));
      await Promise.race([hasBegun.promise, asked]);
      const goneAt = performance.now();
      await fleet.nats.kill("SIGKILL");
      expect(await asked).toMatchObject({ status: 503, body: { error: { code: "fleet_unreachable" } } });
      expect(performance.now() - goneAt).toBeLessThan(SOON_MS);
    } finally {
      await restartNats();
      await spy.close();
    }
    await together();
  });
});
