import { once } from "node:events";
import net from "node:net";
import { describe, expect, it } from "vitest";
import { z } from "zod";
import { DaemonClient, readLines } from "../../../../src/cli/client/daemon-client.ts";
import { parseEndpoint } from "../../../../src/cli/client/send-request.ts";
import { type FakeRoutes, ndjson, refuse, startFakeDaemon } from "../fake-daemon.ts";

const anything = z.unknown();
const UNREACHABLE = parseEndpoint("ipc:///nonexistent/daybreak.sock", 0);

function clientOf(url: string, options: { apiKey?: string; signal?: AbortSignal } = {}): DaemonClient {
  return new DaemonClient({
    endpoints: [UNREACHABLE, parseEndpoint(url, 0)],
    signal: new AbortController().signal,
    ...options,
  });
}

/** Sends POST /x to a fake daemon with this response. */
async function post(answer: FakeRoutes[string]): Promise<unknown> {
  await using daemon = await startFakeDaemon({ "POST /x": answer });
  return await clientOf(daemon.url).json(anything, "POST", "/x", { a: 1 });
}

describe("json", () => {
  it("sends JSON and returns the response with unknown fields", async () => {
    await using daemon = await startFakeDaemon({ "POST /x": { known: 1, later: true } });
    const client = clientOf(daemon.url, { apiKey: "secret" });
    const answer = await client.json(z.object({ known: z.number() }), "POST", "/x", { text: "grün" });
    expect(answer).toEqual({ known: 1, later: true });
    expect(daemon.requests).toMatchObject([
      {
        body: { text: "grün" },
        headers: {
          authorization: "Bearer secret",
          "content-type": "application/json",
          "content-length": "16",
        },
      },
    ]);
  });

  it("connects over the socket", async () => {
    await using daemon = await startFakeDaemon({ "GET /x": { ok: 1 } }, { ipc: true });
    const client = clientOf(`ipc://${daemon.socket}`);
    expect(await client.json(anything, "GET", "/x")).toEqual({ ok: 1 });
    expect(client.description).toBe(`ipc://${daemon.socket}`);
  });

  it("appends the path to that of the address", async () => {
    await using daemon = await startFakeDaemon({ "GET /llm/x": 1 });
    expect(await clientOf(`${daemon.url}/llm/`).json(anything, "GET", "/x")).toBe(1);
  });
});

describe("errors", () => {
  it.each([
    [404, "model_not_found", "not_found", 4],
    [409, "model_already_loaded", "conflict", 5],
    [503, "overloaded", "overloaded", 6],
    [429, "rate_limited", "overloaded", 6],
    [503, "hub_unreachable", "model_error", 6],
    [400, "invalid_parameter", "invalid_request", 2],
    [400, "invalid_modelfile", "invalid_request", 2],
    [400, "invalid_model_name", "invalid_request", 2],
    [413, "payload_too_large", "invalid_request", 2],
    [401, "unauthorized", "invalid_request", 1],
    [400, "a_code_of_a_later_version", "invalid_request", 2],
    [500, "inference_failed", "model_error", 1],
  ])("status %d with code %s and type %s becomes exit code %d", async (status, code, type, exitCode) => {
    await expect(post(refuse(status, code, type, "why"))).rejects.toMatchObject({
      code,
      message: expect.stringMatching(status === 401 ? /^why .*SERVICE_API_KEY\.$/ : /^why$/),
      exitCode,
    });
  });

  it("an error within a stream has the same exit code", async () => {
    const failure = { error: { message: "why", type: "model_error", code: "hub_unreachable" } };
    await using daemon = await startFakeDaemon({ "POST /x": failure });
    const lines = clientOf(daemon.url).lines(anything, "/x", {});
    await expect(lines.next()).rejects.toMatchObject({ code: "hub_unreachable", exitCode: 6 });
  });

  it("names the endpoints when no daemon answers", async () => {
    const client = new DaemonClient({ endpoints: [UNREACHABLE], signal: new AbortController().signal });
    await expect(client.json(anything, "GET", "/x")).rejects.toMatchObject({
      exitCode: 3,
      message: expect.stringContaining("ipc:///nonexistent/daybreak.sock"),
    });
  });

  it.each([
    ["an error status without an error body", 502, "<html>Bad gateway</html>", "HTTP status 502"],
    ["a response with another schema", 200, '"hello"', '"hello"'],
    ["a response that is no JSON", 200, "hello", "hello"],
  ])("reports another program after %s", async (_what, status, body, shown) => {
    await using daemon = await startFakeDaemon({
      "GET /x": (response: { writeHead(status: number): void; end(body: string): void }) => {
        response.writeHead(status);
        response.end(body);
      },
    });
    await expect(clientOf(daemon.url).json(z.object({}), "GET", "/x")).rejects.toMatchObject({
      code: "unexpected_answer",
      message: expect.stringContaining(shown),
    });
  });

  it("reports a lost connection when the daemon dies during a response", async () => {
    const server = net.createServer((socket) => {
      socket.once("data", () => {
        socket.end("HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\nhalf");
      });
    });
    server.listen(0, "127.0.0.1");
    await once(server, "listening");
    const address = server.address();
    const port = typeof address === "object" && address ? address.port : 0;
    await expect(clientOf(`127.0.0.1:${port}`).json(anything, "GET", "/x")).rejects.toMatchObject({
      exitCode: 1,
      code: "connection_lost",
    });
    server.close();
  });
});

describe("lines", () => {
  it("yields the lines", async () => {
    await using daemon = await startFakeDaemon({ "POST /x": ndjson({ n: 1 }, { n: 2 }) });
    const lines = clientOf(daemon.url).lines(z.object({ n: z.number() }), "/x", {});
    expect(await Array.fromAsync(lines)).toEqual([{ n: 1 }, { n: 2 }]);
  });

  it("throws an error in the last line", async () => {
    const error = { message: "crashed", type: "model_error", code: "engine_crashed" };
    await using daemon = await startFakeDaemon({ "POST /x": ndjson({ n: 1 }, { error }) });
    const lines = clientOf(daemon.url).lines(z.object({ n: z.number() }), "/x", {});
    expect((await lines.next()).value).toEqual({ n: 1 });
    await expect(lines.next()).rejects.toMatchObject({
      code: "engine_crashed",
      message: "crashed",
      exitCode: 1,
    });
  });

  it("throws the reason of an interruption instead of an error that comes with it", async () => {
    const error = { message: "going", type: "overloaded", code: "shutting_down" };
    await using daemon = await startFakeDaemon({ "POST /x": ndjson({ n: 1 }, { error }) });
    const interrupted = new AbortController();
    const lines = clientOf(daemon.url).lines(z.object({ n: z.number() }), "/x", {}, interrupted.signal);
    await lines.next();
    interrupted.abort(new Error("interrupted"));
    await expect(lines.next()).rejects.toThrow("interrupted");
  });

  it("throws when the stream is cut off", async () => {
    await using daemon = await startFakeDaemon({
      "POST /x": (response: { write(text: string): void; destroy(): void }) => {
        response.write('{"n":1}\n');
        setImmediate(() => response.destroy());
      },
    });
    const lines = clientOf(daemon.url).lines(z.object({ n: z.number() }), "/x", {});
    await expect(Array.fromAsync(lines)).rejects.toMatchObject({ code: "connection_lost" });
  });

  it("closes the connection when the caller stops reading", async () => {
    await using daemon = await startFakeDaemon({
      "POST /x": (response: { write(text: string): void }) => response.write('{"n":1}\n'),
    });
    for await (const line of clientOf(daemon.url).lines(anything, "/x", {})) {
      expect(line).toEqual({ n: 1 });
      break;
    }
    await daemon.abandoned;
  });

  it("closes the connection when the signal aborts, and throws its reason", async () => {
    await using daemon = await startFakeDaemon({
      "POST /x": (response: { write(text: string): void }) => response.write('{"n":1}\n'),
    });
    const controller = new AbortController();
    const reason = new Error("Ctrl-C");
    const lines = clientOf(daemon.url, { signal: controller.signal }).lines(anything, "/x", {});
    await lines.next();
    const next = lines.next();
    controller.abort(reason);
    await expect(next).rejects.toBe(reason);
    await daemon.abandoned;
  });
});

describe("health", () => {
  it.each([
    [200, "ok"],
    [503, "starting"],
    [503, "draining"],
  ])("with HTTP status %d returns %s", async (status, health) => {
    await using daemon = await startFakeDaemon({
      "GET /health": (response: { writeHead(status: number): void; end(body: string): void }) => {
        response.writeHead(status);
        response.end(JSON.stringify({ status: health }));
      },
    });
    expect(await clientOf(daemon.url).health()).toBe(health);
  });

  it("returns undefined without a daemon or for another program", async () => {
    await using other = await startFakeDaemon({ "GET /health": ["fine"] });
    expect(await clientOf(other.url).health()).toBeUndefined();
    expect(await clientOf("ipc:///nonexistent/other.sock").health()).toBeUndefined();
  });
});

async function* chunks(...parts: (string | Uint8Array)[]) {
  for (const part of parts) yield typeof part === "string" ? Buffer.from(part) : part;
}

async function* failing() {
  yield Buffer.from("one\n");
  throw new Error("cut");
}

describe("readLines", () => {
  it("joins lines across chunks, skips empty ones, and accepts a last line without a line end", async () => {
    const lines = await Array.fromAsync(readLines(chunks("on", "e\ntwo\r", "\n\n\nthr", "ee")));
    expect(lines).toEqual(["one", "two", "three"]);
  });

  it("decodes characters that are split across chunks", async () => {
    const bytes = Buffer.from("grün 👍\n");
    const lines = await Array.fromAsync(
      readLines(chunks(bytes.subarray(0, 3), bytes.subarray(3, 8), bytes.subarray(8))),
    );
    expect(lines).toEqual(["grün 👍"]);
  });

  it("throws what its input throws", async () => {
    await expect(Array.fromAsync(readLines(failing()))).rejects.toThrow("cut");
  });
});
