import { execFileSync } from "node:child_process";
import { once } from "node:events";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import Anthropic from "@anthropic-ai/sdk";
import OpenAI, { toFile } from "openai";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { WebSocket } from "ws";
import { activeRequests } from "../support/active-requests.ts";
import { ENDLESS_OBJECT } from "../support/certain-requests.ts";
import { need } from "../support/need.ts";
import { HAPROXY, startHaproxy, type Proxy } from "../support/haproxy.ts";
import { startDaemon, type TestDaemon } from "../support/start-daemon.ts";

const PROXY = need("haproxy", HAPROXY !== null);

const CONFIG = fileURLToPath(new URL("../../configs/fleet/haproxy.cfg", import.meta.url));
const MODEL = "daybreak-mini";
/** Enough that two machines would both have got some, if chance decided. */
const MANY = 12;

describe.skipIf(PROXY.isMissing)(`configs/fleet/haproxy.cfg${PROXY.note}`, () => {
  let daemons: TestDaemon[];
  let proxy: Proxy;

  async function start(): Promise<void> {
    daemons = await Promise.all([startDaemon(), startDaemon()]);
    const [one = "", two = ""] = daemons.map(({ url }) => new URL(url).host);
    proxy = await startHaproxy(CONFIG, { DAYBREAK_ONE: one, DAYBREAK_TWO: two });
  }

  async function stop(): Promise<void> {
    await proxy?.stop();
    await Promise.all(daemons?.map((daemon) => daemon.stop()) ?? []);
  }

  beforeAll(start);
  afterAll(stop);

  test("is valid as it is", () => {
    expect(() => execFileSync(HAPROXY ?? "", ["-c", "-f", CONFIG], { stdio: "pipe" })).not.toThrow();
  });

  test("says that it is healthy, spreads requests, and passes answers on", async () => {
    expect((await fetch(`${proxy.url}/health`)).status).toBe(200);
    const counts = await countsOf(async () => {
      await Promise.all(Array.from({ length: MANY }, () => ask({})));
    });
    expect(Math.min(...counts)).toBeGreaterThan(0);
    expect(counts.reduce((sum, count) => sum + count, 0)).toBe(MANY);
  });

  test.each([
    ["x-session-id", {}, { "x-session-id": "lesson-7" }],
    ["prompt_cache_key", { prompt_cache_key: "lesson-8" }, {}],
    ["metadata.user_id", { metadata: { user_id: "lesson-9" } }, {}],
    ["user", { user: "lesson-10" }, {}],
  ])("keeps a conversation that is known by its %s on one machine", async (_name, body, headers) => {
    const counts = await countsOf(async () => {
      for (let turn = 0; turn < MANY; turn += 1) await ask(body, headers);
    });
    expect(counts.toSorted((a, b) => a - b)).toEqual([0, MANY]);
  });

  test("keeps responses that continue each other on the machine of their key", async () => {
    // Of several keys, some belong to either machine.
    for (const key of ["a", "b", "c", "d"]) {
      const headers = { "content-type": "application/json", authorization: `Bearer ${key}` };
      let previous: string | undefined;
      for (let turn = 0; turn < 3; turn += 1) {
        const answer = await fetch(`${proxy.url}/v1/responses`, {
          method: "POST",
          headers,
          body: JSON.stringify({
            model: MODEL,
            input: "Hello",
            max_output_tokens: 1,
            previous_response_id: previous,
          }),
        });
        expect(answer.status).toBe(200);
        previous = String(Object(await answer.json()).id);
      }
      const shown = await fetch(`${proxy.url}/v1/responses/${previous}`, { headers });
      expect(shown.status).toBe(200);
    }
  });

  test("keeps files and batches on the machine of their key, whatever else a request says", async () => {
    for (const key of ["a", "b", "c", "d"]) {
      const openai = new OpenAI({ baseURL: `${proxy.url}/v1`, apiKey: key, maxRetries: 0 });
      const line = { custom_id: "1", method: "POST", url: "/v1/chat/completions", body: { model: "none" } };
      const content = await toFile(Buffer.from(JSON.stringify(line)), "in.jsonl");
      const file = await openai.files.create({ file: content, purpose: "batch" });
      const { id } = await openai.batches.create({
        input_file_id: file.id,
        endpoint: "/v1/chat/completions",
        completion_window: "24h",
        metadata: { user_id: `somebody-${key}` },
      });
      expect((await openai.batches.retrieve(id)).input_file_id).toBe(file.id);
      const anthropic = new Anthropic({ baseURL: proxy.url, apiKey: key, maxRetries: 0 });
      const params = { model: "none", max_tokens: 1, messages: [{ role: "user" as const, content: "Hi" }] };
      const made = await anthropic.messages.batches.create({ requests: [{ custom_id: "1", params }] });
      for (const session of ["x", "y", "z"]) {
        const headers = { "x-session-id": session };
        expect((await anthropic.messages.batches.retrieve(made.id, {}, { headers })).id).toBe(made.id);
      }
    }
  });

  test("passes a stream on as it comes, and ends the generation of a client that leaves", async () => {
    const leaving = new AbortController();
    const answer = await stream(leaving.signal);
    const reader = answer.body?.getReader();
    // Its first pieces are here long before its end.
    expect((await reader?.read())?.done).toBe(false);
    expect(await running()).toBe(1);
    leaving.abort();
    await expect.poll(running).toBe(0);
  });

  test("ends the generation of a client that leaves before anything has come", async () => {
    const leaving = new AbortController();
    const answer = fetch(`${proxy.url}/v1/chat/completions`, {
      ...chat({ ...ENDLESS, max_tokens: 3000 }),
      signal: leaving.signal,
    });
    await expect.poll(running).toBe(1);
    leaving.abort();
    await expect(answer).rejects.toThrow(/abort/i);
    await expect.poll(running).toBe(0);
  });

  test("passes WebSockets on", async () => {
    const socket = new WebSocket(`${proxy.url.replace("http", "ws")}/ws/chat`);
    await once(socket, "open");
    socket.send(
      JSON.stringify({
        type: "chat",
        id: "1",
        model: MODEL,
        messages: [{ role: "user", content: "Hi" }],
        max_tokens: 1,
      }),
    );
    const [frame]: unknown[] = await once(socket, "message");
    expect(JSON.parse(String(frame))).not.toHaveProperty("error");
    socket.close();
  });

  test("has models managed on each machine", async () => {
    for (const path of ["/api/models/load", "/api/models/pull", "/ollama/api/pull", "/api/system/shutdown"]) {
      const { status, headers } = await fetch(`${proxy.url}${path}`, { method: "POST" });
      expect([path, status, headers.get("content-type")]).toEqual([path, 403, "application/json"]);
    }
    expect((await fetch(`${proxy.url}/api/models`)).status).toBe(200);
  });

  test("waits for machines that are held up for some seconds", async () => {
    for (const daemon of daemons) daemon.kill("SIGSTOP");
    try {
      await sleep(3000);
      expect((await fetch(`${proxy.url}/health`)).status).toBe(200);
    } finally {
      for (const daemon of daemons) daemon.kill("SIGCONT");
    }
    expect(await ask({})).toBe(200);
  });

  // The last ones, on machines of their own: these are gone after each try.
  describe("whose machines end", () => {
    beforeEach(async () => {
      await stop();
      await start();
    });

    test("sends nothing to a machine that drains, while what it answers goes on to its end", async () => {
      const answer = await stream(new AbortController().signal, 1500);
      const busy = daemons[(await activeRequests(daemons[0]!)) > 0 ? 0 : 1];
      const other = daemons.find((daemon) => daemon !== busy);
      busy?.kill("SIGTERM");
      const before = await requestsOf(other);
      // Every one is answered, also those that come before the next look at its health.
      for (let count = 0; count < MANY; count += 1) expect(await ask({})).toBe(200);
      expect((await requestsOf(other)) - before).toBe(MANY);
      expect(await answer.text()).toMatch(/data: \[DONE\]\s*$/);
      await busy?.exited;
      expect(await ask({}, { "x-session-id": "anything" })).toBe(200);
    });

    test("says that it is not healthy when no machine is", async () => {
      for (const daemon of daemons) daemon.kill("SIGKILL");
      await expect.poll(async () => (await fetch(`${proxy.url}/health`)).status).toBe(503);
    });
  });

  const ENDLESS = {
    response_format: { type: "json_schema", json_schema: { name: "list", schema: ENDLESS_OBJECT } },
  };

  async function stream(signal: AbortSignal, maxTokens = 3000): Promise<Response> {
    const body = { ...ENDLESS, stream: true, max_tokens: maxTokens };
    return await fetch(`${proxy.url}/v1/chat/completions`, { ...chat(body), signal });
  }

  async function ask(body: object, headers: Record<string, string> = {}): Promise<number> {
    const answer = await fetch(`${proxy.url}/v1/chat/completions`, chat({ max_tokens: 1, ...body }, headers));
    await answer.text();
    return answer.status;
  }

  async function running(): Promise<number> {
    const counts = await Promise.all(daemons.map((daemon) => activeRequests(daemon)));
    return counts.reduce((sum, count) => sum + count, 0);
  }

  /** How many requests each machine has had meanwhile. */
  async function countsOf(work: () => Promise<void>): Promise<number[]> {
    const before = await Promise.all(daemons.map(requestsOf));
    await work();
    const after = await Promise.all(daemons.map(requestsOf));
    return after.map((count, index) => count - (before[index] ?? 0));
  }
});

async function requestsOf(daemon: TestDaemon | undefined): Promise<number> {
  const text = await (await fetch(`${daemon?.url}/metrics`)).text();
  const counts = [...text.matchAll(/^service_requests_total\{.*\} (\d+)$/gm)];
  return counts.reduce((sum, [, count]) => sum + Number(count), 0);
}

function chat(body: object, headers: Record<string, string> = {}): RequestInit {
  return {
    method: "POST",
    headers: { "content-type": "application/json", ...headers },
    body: JSON.stringify({ model: MODEL, messages: [{ role: "user", content: "Hi" }], ...body }),
  };
}
