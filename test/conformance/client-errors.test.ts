import { createInterface } from "node:readline";
import { Readable } from "node:stream";
import Anthropic, { APIConnectionTimeoutError as AnthropicTimeout } from "@anthropic-ai/sdk";
import { Ollama } from "ollama";
import OpenAI, { APIConnectionTimeoutError as OpenaiTimeout } from "openai";
import { afterAll, beforeAll, describe, expect, test, vi } from "vitest";
import { activeRequests } from "../support/active-requests.ts";
import { ENDLESS_LIST } from "../support/certain-requests.ts";
import { enginePids } from "../support/daemon-children.ts";
import { startCuttingProxy } from "../support/cutting-proxy.ts";
import { BODY_LIMIT, GUARDED, guardedDaemon } from "../support/shared-daemon.ts";
import { startDaemon, type TestDaemon } from "../support/start-daemon.ts";
import { PROC } from "../support/proc.ts";

const KEY = GUARDED.key;
const model = "daybreak-mini";

interface Call {
  readonly content?: string;
  readonly model?: string;
  readonly headers?: Record<string, string>;
  readonly maxRetries?: number;
  readonly key?: string;
}

interface RunningStream {
  readonly pieces: AsyncIterator<unknown>;
  /** Ends the request from the client's side. */
  readonly leave: () => void;
}

/** One request through an official client, for a long answer; it rejects with what the client raises. */
interface Client {
  readonly name: string;
  readonly ask: (url: string, call?: Call) => Promise<unknown>;
  /** The same streamed. */
  readonly stream: (url: string) => Promise<RunningStream>;
  /** Error that the client raises for a status. */
  readonly raised: (status: number, className: string) => object;
}

const clients: readonly Client[] = [
  {
    name: "openai",
    ask: (url, call) => openai(url, call).chat.completions.create(openaiBody(call)),
    stream: async (url) => {
      const stream = await openai(url).chat.completions.create({ ...openaiBody(), stream: true });
      return { pieces: stream[Symbol.asyncIterator](), leave: () => stream.controller.abort() };
    },
    raised: (status, className) => ({ status, constructor: expect.objectContaining({ name: className }) }),
  },
  {
    name: "anthropic",
    ask: (url, call) => anthropic(url, call).messages.create(anthropicBody(call)),
    stream: async (url) => {
      const stream = await anthropic(url).messages.create({ ...anthropicBody(), stream: true });
      return { pieces: stream[Symbol.asyncIterator](), leave: () => stream.controller.abort() };
    },
    raised: (status, className) => ({
      status: status === 503 ? 529 : status,
      constructor: expect.objectContaining({ name: anthropicClass(status, className) }),
    }),
  },
  {
    name: "ollama",
    ask: (url, call) => ollama(url, call).chat(ollamaBody(call)),
    stream: async (url) => {
      const stream = await ollama(url).chat({ ...ollamaBody(), stream: true });
      return { pieces: readFromNow(stream), leave: () => stream.abort() };
    },
    raised: (status) => ({ name: "ResponseError", status_code: status, error: expect.stringMatching(/./) }),
  },
];

/**
 * Asks for the first piece at once: fetch() cancels a body that nobody has begun to read when its Response is collected,
 * and this client keeps none.
 */
function readFromNow<Piece>(stream: AsyncIterable<Piece>): AsyncIterator<Piece> {
  const pieces = stream[Symbol.asyncIterator]();
  let first: Promise<IteratorResult<Piece>> | undefined = pieces.next();
  first.catch(() => {}); // readers get the error from the promise
  return {
    next: async () => {
      const piece = first ?? pieces.next();
      first = undefined;
      return await piece;
    },
  };
}

function openai(url: string, { headers = {}, maxRetries = 0, key = KEY }: Call = {}): OpenAI {
  return new OpenAI({ baseURL: `${url}/v1`, apiKey: key, maxRetries, defaultHeaders: headers });
}

function openaiBody({ content = "hi", model: named = model }: Call = {}) {
  const format = { type: "json_schema" as const, json_schema: { name: "long", schema: ENDLESS_LIST } };
  return { model: named, messages: [{ role: "user" as const, content }], response_format: format };
}

function anthropic(url: string, { headers = {}, maxRetries = 0, key = KEY }: Call = {}): Anthropic {
  return new Anthropic({ baseURL: url, apiKey: key, maxRetries, defaultHeaders: headers });
}

function anthropicBody({ content = "hi", model: named = model }: Call = {}) {
  const messages = [{ role: "user" as const, content }];
  const format = { type: "json_schema" as const, schema: ENDLESS_LIST };
  return { model: named, max_tokens: 2000, messages, output_config: { format } };
}

/** This client has classes for statuses that the other knows only by their hundreds. */
function anthropicClass(status: number, className: string): string {
  return { 413: "ContentTooLargeError", 503: "OverloadedError" }[status] ?? className;
}

function ollama(url: string, { headers = {}, key = KEY }: Call = {}): Ollama {
  return new Ollama({ host: `${url}/ollama`, headers: { authorization: `Bearer ${key}`, ...headers } });
}

function ollamaBody({ content = "hi", model: named = model }: Call = {}) {
  return { model: named, messages: [{ role: "user", content }], format: ENDLESS_LIST };
}

let strict: TestDaemon;

beforeAll(async () => {
  strict = await guardedDaemon();
});

async function untilIdle(): Promise<void> {
  await expect.poll(() => activeRequests(strict, KEY)).toBe(0);
}

async function readAll(pieces: AsyncIterator<unknown>): Promise<void> {
  while (!(await pieces.next()).done);
}

describe.for(clients)("the errors of $name", ({ ask, stream, raised }) => {
  test.for<[number, string, string, Call]>([
    [400, "BadRequestError", "a conversation that does not fit", { content: "word ".repeat(4000) }],
    [401, "AuthenticationError", "a wrong key", { key: "wrong" }],
    [403, "PermissionDeniedError", "a page of another origin", { headers: { origin: "https://evil.test" } }],
    [404, "NotFoundError", "an unknown model", { model: "no-such-model" }],
    [413, "APIError", "a body that is too large", { content: "x".repeat(BODY_LIMIT) }],
  ])("%i %s: %s", async ([status, className, , call]) => {
    await expect(ask(strict.url, call)).rejects.toMatchObject(raised(status, className));
  });

  test("503 while the model is busy, until it is free again", async () => {
    const running = await Promise.all(Array.from({ length: GUARDED.slots }, () => stream(strict.url)));
    for (const { pieces } of running) await pieces.next();
    await expect(ask(strict.url)).rejects.toMatchObject(raised(503, "InternalServerError"));
    for (const { leave } of running) leave();
    await untilIdle();
  });

  test("an error, not an end, when the connection drops in mid-stream, and the slot is free", async () => {
    const proxy = await startCuttingProxy(strict.url);
    const { pieces } = await stream(proxy.url);
    await pieces.next();
    proxy.cut();
    await expect(readAll(pieces)).rejects.toThrow(/./);
    await untilIdle();
    await proxy.close();
    await expect(ask(proxy.url)).rejects.toThrow(/connect|fetch failed/i);
  });
});

/** The native stream of the same. */
async function openLines(): Promise<{ first: unknown; last: () => Promise<unknown> }> {
  const answer = await fetch(`${strict.url}/api/generate`, {
    method: "POST",
    headers: { "content-type": "application/json", authorization: `Bearer ${KEY}` },
    body: JSON.stringify({ prompt: "hi", max_tokens: 2000, format: ENDLESS_LIST, stream: true }),
  });
  const lines = createInterface(Readable.from(answer.body!))[Symbol.asyncIterator]();
  const first: unknown = JSON.parse(String((await lines.next()).value));
  return {
    first,
    async last() {
      let line = "";
      for (let next = await lines.next(); !next.done; next = await lines.next()) line = next.value;
      return JSON.parse(line);
    },
  };
}

test.skipIf(PROC.isMissing)(
  `every stream ends with an error when the engine dies, and the next request is served${PROC.note}`,
  async () => {
    const dying = await Promise.all(clients.map(({ stream }) => stream(strict.url)));
    for (const { pieces } of dying) await pieces.next();
    const native = await openLines();
    expect(native.first).toMatchObject({ done: false });
    for (const pid of enginePids(strict.pid)) process.kill(pid, "SIGKILL");
    for (const { pieces } of dying) await expect(readAll(pieces)).rejects.toThrow(/engine/);
    expect(await native.last()).toEqual({
      error: { message: expect.any(String), type: "model_error", code: "engine_crashed" },
    });
    const next = await Promise.all(clients.map(({ stream }) => stream(strict.url)));
    for (const { pieces, leave } of next) {
      expect((await pieces.next()).done).toBe(false);
      leave();
    }
    await untilIdle();
  },
);

describe("beyond the rate limit", () => {
  let limited: TestDaemon;
  beforeAll(async () => {
    limited = await startDaemon({ args: ["--http-rate-limit", "60", "--models-load", ""] });
  });
  afterAll(() => limited.stop());

  test("429 with Retry-After in the shape of the route, but not at /health", async () => {
    const asked = Array.from({ length: 100 }, () => fetch(`${limited.url}/v1/models`));
    const answers = await Promise.all(asked);
    const refused = answers.find(({ status }) => status === 429);
    expect(Number(refused?.headers.get("retry-after"))).toBeGreaterThan(0);
    expect(await refused?.json()).toMatchObject({ error: { code: "rate_limited", param: null } });
    expect((await fetch(`${limited.url}/health`)).status).toBe(200);
  });

  test.for(clients)(
    "429 for $name; a client that may retry waits as long as the header says",
    async ({ name, ask, raised }) => {
      const asked = Array.from({ length: 100 }, () => ask(limited.url, { model: "none" }));
      const reasons = (await Promise.allSettled(asked)).map((result) =>
        result.status === "rejected" ? result.reason : undefined,
      );
      expect(reasons).toContainEqual(expect.objectContaining(raised(429, "RateLimitError")));
      if (name === "ollama") return; // this client never tries again
      const patient = ask(limited.url, { model: "none", maxRetries: 3 });
      await expect(patient).rejects.toMatchObject(raised(404, "NotFoundError"));
    },
  );
});

describe("time that runs out on the client's side", () => {
  test("is an error of its own, a line in the log, and frees the slot", async () => {
    const before = strict.logs().length;
    const timeout = { timeout: 3_600_000, maxRetries: 0 };
    /** Error that the client raises when its timeout passes while the daemon works on the request. */
    const late = async (ask: () => Promise<unknown>): Promise<unknown> => {
      const timers = vi.spyOn(globalThis, "setTimeout");
      const raised = ask().catch((error: unknown) => error);
      await expect.poll(() => activeRequests(strict, KEY)).toBe(1);
      const [runOut] = timers.mock.calls.find(([, ms]) => ms === timeout.timeout)!;
      runOut();
      timers.mockRestore();
      return await raised;
    };
    expect(
      await late(() => openai(strict.url).chat.completions.create(openaiBody(), timeout)),
    ).toBeInstanceOf(OpenaiTimeout);
    await untilIdle();
    await expect
      .poll(() => strict.logs().slice(before))
      .toMatch(/"path":"\/v1\/chat\/completions","status":499,.*"aborted":true/);
    expect(await late(() => anthropic(strict.url).messages.create(anthropicBody(), timeout))).toBeInstanceOf(
      AnthropicTimeout,
    );
    await untilIdle();
  });
});

describe("time that runs out on the daemon's side", () => {
  let hasty: TestDaemon;
  beforeAll(async () => {
    hasty = await startDaemon({ args: ["--engine-request-timeout", "300ms"] });
  });
  afterAll(() => hasty.stop());

  test.for(clients)("is 500 for $name, or the last event of a stream", async ({ ask, stream, raised }) => {
    await expect(ask(hasty.url)).rejects.toMatchObject(raised(500, "InternalServerError"));
    const late = stream(hasty.url).then(({ pieces }) => readAll(pieces));
    await expect(late).rejects.toThrow(/longer than 0.3 s/);
  });
});
