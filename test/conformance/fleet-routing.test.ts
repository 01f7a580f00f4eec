import { afterAll, beforeAll, describe, expect, onTestFinished, test } from "vitest";
import { NATS } from "../support/nats-server.ts";
import { postJson } from "../support/post-json.ts";
import type { TestDaemon } from "../support/start-daemon.ts";
import { ask, FLEET_MODEL, fleetOf, TestFleet } from "../support/test-fleet.ts";

/** Requests that a daemon has been asked for by clients or other machines. */
async function requestsOf(daemon: TestDaemon): Promise<number> {
  return Number(/service_requests_total\{endpoint="chat"\} (\d+)/.exec(await read(daemon, "/metrics"))?.[1]);
}

async function tokensOf(daemon: TestDaemon): Promise<number> {
  return Number(/^service_tokens_generated_total (\d+)/m.exec(await read(daemon, "/metrics"))?.[1]);
}

async function read({ url }: TestDaemon, path: string): Promise<string> {
  return await (await fetch(`${url}${path}`)).text();
}

async function runningAt(daemon: TestDaemon): Promise<number> {
  const [self] = (await fleetOf(daemon)).machines;
  return self?.running ?? 0;
}

async function experiment({ url }: TestDaemon) {
  const response = await postJson(`${url}/api/experiment`, {
    model: FLEET_MODEL,
    messages: [{ role: "user", content: "once upon a time" }],
    max_tokens: 8,
  });
  const body: { text: string; tokens: unknown[]; machine: string } = JSON.parse(await response.text());
  const { text, tokens, machine } = body;
  return { status: response.status, text, tokens, machine };
}

describe.skipIf(NATS.isMissing)(`a request to a fleet${NATS.note}`, () => {
  let fleet: TestFleet;
  let entrance: TestDaemon;
  let attic: TestDaemon;

  beforeAll(async () => {
    fleet = await TestFleet.start();
    [entrance, attic] = await Promise.all([fleet.join("desk", { hasModel: false }), fleet.join("attic")]);
    await fleet.complete(entrance, 2, 1);
  });
  afterAll(async () => await fleet.stop());

  test("for a model that another machine has is answered as that machine answers", async () => {
    const there = await ask(attic, "once upon a time");
    expect(there).toMatchObject({ status: 200, body: { usage: { completion_tokens: 48 } } });
    const here = await ask(entrance, "once upon a time");
    expect(here.text).toBe(there.text);
    expect(here.body).toMatchObject({ model: FLEET_MODEL, usage: { completion_tokens: 48 } });
  });

  test("finds that model in every API's list", async () => {
    for (const path of ["/v1/models", "/ollama/api/tags", "/api/models"])
      expect(await read(entrance, path)).toContain(FLEET_MODEL);
    expect(JSON.parse(await read(entrance, `/api/models/${FLEET_MODEL}`))).toMatchObject({
      source: "fleet",
      from: "attic",
    });
  });

  test.each([
    ["/v1/messages", { max_tokens: 8, messages: [{ role: "user", content: "a" }] }],
    ["/api/chat", { messages: [{ role: "user", content: "a" }] }],
    ["/api/generate", { prompt: "a", max_tokens: 8 }],
    ["/v1/completions", { prompt: "a", max_tokens: 8, logprobs: 2, temperature: 0 }],
    ["/v1/completions", { prompt: "a", max_tokens: 8, n: 2 }],
    ["/v1/responses", { input: "a", max_output_tokens: 16 }],
    ["/tokenize", { content: "once upon a time" }],
  ])("%s with %j works on any entrance", async (path, body) => {
    const answers = await Promise.all(
      [entrance, attic].map(async ({ url }) => {
        const response = await postJson(`${url}${path}`, { model: FLEET_MODEL, ...body });
        return { status: response.status, text: await response.text() };
      }),
    );
    const [here, there] = answers;
    expect(here?.text.slice(0, 2000)).toMatch(/^[{[]/);
    expect([here?.status, there?.status]).toEqual([200, 200]);
  });

  test("as an experiment tells every token of the machine that answers", async () => {
    const there = await experiment(attic);
    expect(there.tokens).not.toEqual([]);
    const here = await experiment(entrance);
    expect(here).toEqual({ ...there, machine: here.machine });
    // It tells the processor and system of the other machine, which does not tell its Node.
    expect(there.machine).toContain(`${here.machine}, Node`);
  });

  test("right after it has been unloaded loads it again", async () => {
    expect((await fetch(`${attic.url}/api/models/${FLEET_MODEL}/unload`, { method: "POST" })).status).toBe(
      200,
    );
    expect(await ask(entrance, "once upon a time")).toMatchObject({ status: 200 });
  });

  test("without a prompt, as Ollama's clients load a model, is answered when it is loaded there", async () => {
    expect((await fetch(`${attic.url}/api/models/${FLEET_MODEL}/unload`, { method: "POST" })).status).toBe(
      200,
    );
    const response = await postJson(`${entrance.url}/ollama/api/generate`, { model: FLEET_MODEL });
    expect(await response.json()).toMatchObject({ done_reason: "load" });
    await fleet.complete(entrance, 2, 1);
  });

  test("with a field that is wrong gets the same error as on that machine", async () => {
    const wrong = { logit_bias: { 999999: 1 } };
    const [here, there] = await Promise.all([ask(entrance, "a", wrong), ask(attic, "a", wrong)]);
    expect(here).toEqual(there);
    expect(here.status).toBe(400);
    const tooLong = await ask(entrance, "a b ".repeat(3000));
    expect(tooLong).toMatchObject({ status: 400, body: { error: { code: "context_length_exceeded" } } });
  });

  test("for a model that nobody has is 404", async () => {
    // As soon as all machines had time to come.
    await expect.poll(async () => (await ask(entrance, "a", { model: "nonexistent" })).status).toBe(404);
  });

  test("is streamed piece by piece, and ended on the other machine when the client leaves", async () => {
    const tokens = 1900;
    const before = await tokensOf(attic);
    const stop = new AbortController();
    const response = await fetch(`${entrance.url}/v1/chat/completions`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify({
        model: FLEET_MODEL,
        messages: [{ role: "user", content: "a" }],
        stream: true,
        max_tokens: tokens,
        ignore_eos: true,
      }),
      signal: stop.signal,
    });
    let text = "";
    for await (const piece of response.body!.pipeThrough(new TextDecoderStream())) {
      text += piece;
      // The first piece has a role, and no text.
      if (/"content":"[^"]/.test(text)) break;
    }
    stop.abort();
    await expect.poll(async () => await runningAt(attic)).toBe(0);
    const generated = (await tokensOf(attic)) - before;
    expect(generated).toBeGreaterThan(0);
    expect(generated).toBeLessThan(tokens);
  });

  test("waits in the entrance's queue while all machines are busy, and none is lost", async () => {
    const answers = await Promise.all(
      Array.from({ length: 16 }, async (_, index) => await ask(entrance, `the ${index}`, { max_tokens: 24 })),
    );
    expect(answers.map(({ status }) => status)).toEqual(answers.map(() => 200));
  });

  test("goes to several machines, and a conversation to the one that knows its beginning", async () => {
    const cellar = await fleet.join("cellar");
    onTestFinished(async () => await cellar.stop());
    await fleet.complete(entrance, 3, 2);
    const before = [await requestsOf(attic), await requestsOf(cellar)];
    await Promise.all(
      Array.from({ length: 8 }, async (_, index) => await ask(entrance, `of ${index}`, { max_tokens: 64 })),
    );
    const after = [await requestsOf(attic), await requestsOf(cellar)];
    expect(after[0]).toBeGreaterThan(before[0] ?? 0);
    expect(after[1]).toBeGreaterThan(before[1] ?? 0);
    const messages = [{ role: "user", content: "once upon a time there was a ".repeat(20) }];
    const cached: number[] = [];
    for (let turn = 0; turn < 4; turn += 1) {
      const { text, body } = await ask(entrance, "", { messages, max_tokens: 8 });
      const usage = JSON.stringify(body);
      cached.push(Number(/"cached_tokens":(\d+)/.exec(usage)?.[1]));
      messages.push({ role: "assistant", content: text }, { role: "user", content: "and" });
    }
    expect(cached.slice(1).every((tokens) => tokens > 100)).toBe(true);
  });

  test("may be sent again while the NATS server is gone, and has just come back", async () => {
    await fleet.nats.kill("SIGKILL");
    try {
      await expect.poll(async () => (await fleetOf(entrance)).connected).toBe(false);
      expect(await ask(entrance, "a")).toMatchObject({
        status: 503,
        body: { error: { code: "fleet_unreachable" } },
      });
    } finally {
      await fleet.nats.restart();
    }
    // Until it is answered, nothing else is said.
    const statuses = new Set([503]);
    const asked = async (): Promise<Set<number>> => statuses.add((await ask(entrance, "a")).status);
    await expect.poll(asked, { interval: 10 }).toEqual(new Set([503, 200]));
  });
});
