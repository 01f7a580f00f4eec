import { once } from "node:events";
import { readdirSync } from "node:fs";
import { type IncomingMessage, request } from "node:http";
import net from "node:net";
import { beforeAll, describe, expect, test } from "vitest";
import { activeRequests } from "../support/active-requests.ts";
import { ENDLESS_LIST } from "../support/certain-requests.ts";
import { BODY_LIMIT, sharedDaemon } from "../support/shared-daemon.ts";
import type { TestDaemon } from "../support/start-daemon.ts";
import { LINUX_PROC } from "../support/proc.ts";
import { MANY_FILES } from "../support/many-files.ts";
import { both } from "../support/need.ts";

/** More connections than any client opens, but fewer than the usual limit of open files. */
const OPEN_STREAMS = 400;

/** Requirements of the test that counts connections. */
const STREAMS_SEEN = both(MANY_FILES, LINUX_PROC);
let daemon: TestDaemon;

beforeAll(async () => {
  daemon = await sharedDaemon();
});

function post(path: string, body: BodyInit, init: RequestInit = {}): Promise<Response> {
  return fetch(`${daemon.url}${path}`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body,
    ...init,
  });
}

async function connect(): Promise<net.Socket> {
  const socket = net.connect(Number(new URL(daemon.url).port), "127.0.0.1");
  socket.on("error", () => undefined);
  await once(socket, "connect");
  return socket;
}

describe("bodies", () => {
  test.each(["/api/generate", "/api/models/load", "/v1/chat/completions", "/v1/messages"])(
    "one beyond the limit is 413 at %s",
    async (path) => {
      expect((await post(path, `{"prompt": "${"x".repeat(BODY_LIMIT)}"}`)).status).toBe(413);
    },
  );

  test("a chunked body is refused before it is complete", async () => {
    const socket = await connect();
    socket.write(
      "POST /api/generate HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n",
    );
    const half = BODY_LIMIT / 2 + 1;
    socket.write(`${half.toString(16)}\r\n${" ".repeat(half)}\r\n`.repeat(2));
    const [head]: unknown[] = await once(socket, "data");
    expect(String(head)).toMatch(/^HTTP\/1\.1 413 /);
    expect(String(head)).toContain("payload_too_large");
    socket.destroy();
  });

  test("a body in chunks that split a character is read completely", async () => {
    const body = Buffer.from(JSON.stringify({ prompt: "é", max_tokens: 1, model: "no-such-model-é" }));
    const cut = body.lastIndexOf("é") + 1;
    const socket = await connect();
    socket.write(
      `POST /api/generate HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: ${body.length}\r\nConnection: close\r\n\r\n`,
    );
    socket.write(body.subarray(0, cut));
    // The daemon has read the first chunk when it answers another request.
    await fetch(`${daemon.url}/health`);
    socket.write(body.subarray(cut));
    let answer = "";
    for await (const chunk of socket.setEncoding("utf8")) answer += String(chunk);
    expect(answer).toContain("no-such-model-é");
  });

  test("a too large body over the IPC socket gets a response", async () => {
    const response = await new Promise<IncomingMessage>((resolve, reject) => {
      const headers = { "content-type": "application/json", "transfer-encoding": "chunked" };
      const sent = request(
        { socketPath: daemon.socket, path: "/api/generate", method: "POST", headers },
        resolve,
      );
      sent.on("error", reject);
      // The body is not ended: it is too large already.
      sent.write(Buffer.alloc(BODY_LIMIT + 1, " "));
    });
    expect(response.statusCode).toBe(413);
    response.destroy();
  });

  test("the daemon keeps serving after a client that stops in its body", async () => {
    const socket = await connect();
    socket.write(
      "POST /api/generate HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n{",
    );
    socket.destroy();
    expect((await fetch(`${daemon.url}/health`)).status).toBe(200);
  });
});

async function answerTo(sent: string): Promise<{ status: number; body: unknown }> {
  const socket = await connect();
  socket.write(sent);
  let answer = "";
  for await (const chunk of socket.setEncoding("utf8")) answer += String(chunk);
  const [head = "", body = ""] = answer.split("\r\n\r\n");
  expect(head).toContain("content-type: application/json");
  return { status: Number(head.split(" ")[1]), body: JSON.parse(body) };
}

describe("malformed requests", () => {
  test.each([
    ["no HTTP", "hello\r\n\r\n", 400, "malformed_request"],
    ["a header line without a colon", "GET /health HTTP/1.1\r\nhello\r\n\r\n", 400, "malformed_request"],
    [
      "two lengths",
      "POST /api/generate HTTP/1.1\r\nHost: localhost\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\n{}",
      400,
      "malformed_request",
    ],
    [
      "headers without end",
      `GET /health HTTP/1.1\r\nHost: localhost\r\nX-Long: ${"x".repeat(20_000)}\r\n\r\n`,
      431,
      "headers_too_large",
    ],
  ])("get an error response and close the connection: %s", async (_what, sent, status, code) => {
    expect(await answerTo(sent)).toEqual({
      status,
      body: { error: { type: "invalid_request", code, message: expect.stringMatching(/\.$/) } },
    });
    expect((await fetch(`${daemon.url}/health`)).status).toBe(200);
  });

  test("close a connection with a response in progress without a second response", async () => {
    const body = JSON.stringify({ prompt: "Hello", stream: true, max_tokens: 1500, format: ENDLESS_LIST });
    const socket = await connect();
    socket
      .setEncoding("utf8")
      .write(
        `POST /api/generate HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: ${body.length}\r\n\r\n${body}`,
      );
    let answer = "";
    for await (const chunk of socket) {
      if (answer === "") socket.write("hello\r\n\r\n");
      answer += String(chunk);
    }
    expect(answer).toMatch(/^HTTP\/1\.1 200 /);
    expect(answer).not.toContain("malformed_request");
    expect(answer).not.toContain('"done":true');
    await expect.poll(() => activeRequests(daemon)).toBe(0);
  });
});

describe("hostile values are 400 with the path of the field", () => {
  test.each([
    ["temperature", "-1"],
    ["temperature", "1e400"],
    ["temperature", '"hot"'],
    ["top_k", "-5"],
    ["top_k", "2147483648"],
    ["top_p", "1.5"],
    ["max_tokens", "-1"],
    ["max_tokens", "1.5"],
    ["seed", "1.5"],
    ["seed", "-2"],
    ["stop", "[5]"],
    ["prompt", "null"],
    ["stream", '"yes"'],
  ])("%s: %s", async (field, value) => {
    const fields = { prompt: '"hi"', max_tokens: "1", [field]: value };
    const body = Object.entries(fields).map(([name, json]) => `"${name}": ${json}`);
    const response = await post("/api/generate", `{${body.join(", ")}}`);
    expect(response.status).toBe(400);
    const { error }: { error: { message: string; type: string } } = await response.json();
    expect(error.type).toBe("invalid_request");
    expect(error.message).toMatch(new RegExp(`^${field}`));
  });

  test.each(["NaN", "{", "[1,2", "", "\u0000", '{"prompt": NaN}'])(
    "the body %j is invalid JSON",
    async (body) => {
      const response = await post("/api/chat", body);
      expect(response.status).toBe(400);
      expect(await response.json()).toMatchObject({
        error: { type: "invalid_request", code: "invalid_json" },
      });
    },
  );

  test("__proto__ is ignored like other unknown fields", async () => {
    const body = '{"prompt": "hi", "max_tokens": 1, "__proto__": {"max_tokens": 99}, "constructor": 1}';
    expect((await post("/api/generate", body)).status).toBe(200);
  });
});

describe("clients that disconnect", () => {
  test("free their slot at once", async () => {
    const body = JSON.stringify({ prompt: "hi", max_tokens: 1500, stream: true, format: ENDLESS_LIST });
    const aborts = Array.from({ length: 6 }, () => new AbortController());
    const streams = aborts.map(({ signal }) => post("/api/generate", body, { signal }));
    const first = await streams[0]!;
    await first.body!.getReader().read();
    expect(await activeRequests(daemon)).toBeGreaterThan(0);
    for (const abort of aborts) abort.abort();
    await Promise.allSettled(streams);
    await expect.poll(() => activeRequests(daemon)).toBe(0);
    expect((await post("/api/generate", '{"prompt": "hi", "max_tokens": 1}')).status).toBe(200);
  });

  test.skipIf(MANY_FILES.isMissing)(
    `hundreds of open event streams hinder nobody${MANY_FILES.note}`,
    async () => {
      const abort = new AbortController();
      const streams = await openStreams(abort.signal);
      expect(streams.every(({ statusCode }) => statusCode === 200)).toBe(true);
      expect((await post("/api/generate", '{"prompt": "hi", "max_tokens": 1}')).status).toBe(200);
      abort.abort();
      expect((await fetch(`${daemon.url}/health`)).status).toBe(200);
    },
  );

  test.skipIf(STREAMS_SEEN.isMissing)(
    `close their connections with their event streams${STREAMS_SEEN.note}`,
    async () => {
      // Connections of the previous test may still be closing.
      await expect.poll(openFiles).toBeLessThan(OPEN_STREAMS / 4);
      const abort = new AbortController();
      const streams = await openStreams(abort.signal);
      expect(streams.every(({ statusCode }) => statusCode === 200)).toBe(true);
      expect(openFiles()).toBeGreaterThan(OPEN_STREAMS);
      abort.abort();
      await expect.poll(openFiles).toBeLessThan(OPEN_STREAMS / 4);
    },
  );
});

/** Without fetch, whose pool reopens connections of aborted requests. */
function openStreams(signal: AbortSignal): Promise<IncomingMessage[]> {
  return Promise.all(Array.from({ length: OPEN_STREAMS }, () => openStream(signal)));
}

async function openStream(signal: AbortSignal): Promise<IncomingMessage> {
  const call = request(`${daemon.url}/api/events`, { signal, agent: false }).end();
  call.on("error", () => undefined);
  const [answer]: IncomingMessage[] = await once(call, "response");
  answer!.on("error", () => undefined);
  return answer!;
}

/** Open files and connections of the daemon. */
function openFiles(): number {
  return readdirSync(`/proc/${daemon.pid}/fd`).length;
}
