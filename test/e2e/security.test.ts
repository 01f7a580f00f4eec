import { readdirSync, readFileSync, statSync } from "node:fs";
import http from "node:http";
import { beforeAll, describe, expect, test } from "vitest";
import { WebSocket } from "ws";
import { ALLOWED_ORIGIN, GUARDED, guardedDaemon } from "../support/shared-daemon.ts";
import type { TestDaemon } from "../support/start-daemon.ts";
import { LINUX_PROC } from "../support/proc.ts";

const KEY = GUARDED.key;
let daemon: TestDaemon;

beforeAll(async () => {
  daemon = await guardedDaemon();
});

const keyed = { authorization: `Bearer ${KEY}` };

/** Sends a request with headers that fetch refuses. */
function raw(
  path: string,
  headers: Record<string, string>,
  method = "GET",
): Promise<{ status: number; body: string }> {
  return new Promise((resolve, reject) => {
    const request = http.request(`${daemon.url}${path}`, { method, headers }, (response) => {
      let body = "";
      response.setEncoding("utf8").on("data", (chunk: string) => (body += chunk));
      response.on("end", () => resolve({ status: response.statusCode ?? 0, body }));
    });
    request.on("error", reject);
    request.end();
  });
}

/** Status of a WebSocket handshake; 101 if it is accepted. */
function handshake(headers: Record<string, string>): Promise<number> {
  return new Promise((resolve, reject) => {
    const socket = new WebSocket(`${daemon.url.replace("http", "ws")}/ws/chat`, { headers });
    socket.on("open", () => {
      socket.close();
      resolve(101);
    });
    socket.on("unexpected-response", (_request, response) => {
      response.resume();
      resolve(response.statusCode ?? 0);
    });
    socket.on("error", reject);
  });
}

describe("a daemon on loopback with a key and one allowed origin", () => {
  test.each(["evil.test", "evil.test:8080", "localhost.evil.test", "EVIL.test.", "[2001:db8::1]"])(
    "refuses the Host %s",
    async (host) => {
      expect(await raw("/health", { host })).toMatchObject({
        status: 403,
        body: expect.stringContaining('"code":"forbidden_host"'),
      });
    },
  );

  test.each(["LOCALHOST", "localhost.:1", "127.0.0.1", "[::1]:80"])("serves the Host %s", async (host) => {
    expect((await raw("/health", { host })).status).toBe(200);
  });

  test("requires the key except for /health and the page's files, with errors in the API's format", async () => {
    for (const path of ["/health", "/ui/", "/browser/page.js"])
      expect((await raw(path, {})).status).toBe(200);
    for (const path of ["/status", "/metrics", "/docs", "/openapi.json", "/api/events", "/nowhere"]) {
      expect((await raw(path, {})).status).toBe(401);
    }
    expect((await raw("/status", keyed)).status).toBe(200);
    expect((await raw("/status", { "x-api-key": KEY })).status).toBe(200);
    const openai = await raw("/v1/models", { authorization: "Bearer wrong" });
    expect(JSON.parse(openai.body)).toMatchObject({ error: { code: "unauthorized", param: null } });
    const anthropic = await raw("/v1/messages", { "x-api-key": "wrong" }, "POST");
    expect(JSON.parse(anthropic.body)).toMatchObject({
      type: "error",
      error: { type: "authentication_error" },
    });
  });

  test("refuses a WebSocket without a key or from a foreign page", async () => {
    expect(await handshake({})).toBe(401);
    expect(await handshake({ ...keyed, origin: "https://evil.test" })).toBe(403);
    expect(await handshake({ ...keyed, origin: "null" })).toBe(403);
    expect(await handshake({ ...keyed, host: "evil.test" })).toBe(403);
    expect(await handshake({ ...keyed, origin: ALLOWED_ORIGIN })).toBe(101);
    expect(await handshake(keyed)).toBe(101);
  });

  test("refuses requests that a foreign page can send without a preflight", async () => {
    const page = { ...keyed, origin: "https://evil.test" };
    expect((await raw("/api/models/daybreak-mini/unload", page, "POST")).status).toBe(403);
    const allowedPage = { ...keyed, origin: ALLOWED_ORIGIN, "content-type": "text/plain" };
    expect((await raw("/api/models/load", allowedPage, "POST")).status).toBe(415);
    const status: { models_loaded: number } = JSON.parse((await raw("/status", keyed)).body);
    expect(status.models_loaded).toBe(1);
  });

  test("no GET changes anything", async () => {
    for (const path of ["/api/models/load", "/api/models/pull", "/api/generate", "/api/chat"]) {
      expect([404, 405]).toContain((await raw(path, keyed)).status);
    }
    expect((await raw("/api/models/daybreak-mini/unload", keyed)).status).not.toBe(200);
  });

  test("logs neither keys nor prompts, and names cannot forge log lines", async () => {
    const prompt = "prompt-that-must-not-leak";
    const response = await fetch(`${daemon.url}/api/generate?api_key=${KEY}`, {
      method: "POST",
      headers: { ...keyed, "content-type": "application/json" },
      body: JSON.stringify({ prompt, max_tokens: 1 }),
    });
    expect(response.status).toBe(200);
    await fetch(`${daemon.url}/api/generate`, {
      method: "POST",
      headers: { ...keyed, "content-type": "application/json" },
      body: `{"prompt": "${prompt}`,
    });
    await raw("/api/models/x%0A%7B%22level%22%3A60%7D", keyed);
    await raw("/api/models/forged%22%7D", keyed);
    await expect.poll(() => daemon.logs()).toContain("/api/models/forged");
    const logs = daemon.logs();
    expect(logs).not.toContain("must-not-leak");
    for (const line of logs.split("\n").filter((each) => each.startsWith("{"))) {
      expect(JSON.parse(line)).not.toMatchObject({ level: 60 });
    }
  });

  test.skipIf(LINUX_PROC.isMissing)(`its engine sees neither the key nor the token${LINUX_PROC.note}`, () => {
    const children = readdirSync(`/proc/${daemon.pid}/task`).flatMap((thread) =>
      readFileSync(`/proc/${daemon.pid}/task/${thread}/children`, "utf8").trim().split(" ").filter(Boolean),
    );
    expect(children.length).toBeGreaterThan(0);
    for (const child of children) {
      expect(readFileSync(`/proc/${child}/environ`, "utf8")).not.toContain("must-not-leak");
      expect(readFileSync(`/proc/${child}/cmdline`, "utf8")).not.toContain("must-not-leak");
    }
  });

  test.skipIf(process.platform === "win32")(
    "opens no debugger when it is sent the signal for one",
    async () => {
      const before = daemon.logs().length;
      process.kill(daemon.pid, "SIGUSR1");
      // The signal is handled before the second response.
      for (let time = 0; time < 2; time += 1) expect((await raw("/health", {})).status).toBe(200);
      expect(daemon.logs().slice(before)).not.toMatch(/debugger/i);
    },
  );

  test.skipIf(process.platform === "win32")(
    "its socket is accessible to its owner only and needs no key",
    async () => {
      expect(statSync(daemon.socket).mode & 0o777).toBe(0o600);
      const status = await new Promise<number>((resolve, reject) => {
        http
          .get({ socketPath: daemon.socket, path: "/status" }, (response) => {
            response.resume();
            resolve(response.statusCode ?? 0);
          })
          .on("error", reject);
      });
      expect(status).toBe(200);
    },
  );

  test("the page has a strict policy", async () => {
    const page = await fetch(`${daemon.url}/ui/`, { headers: keyed });
    const policy = page.headers.get("content-security-policy");
    expect(policy).toContain("default-src 'none'");
    // Allows WebAssembly but no eval.
    expect(policy?.replace("'wasm-unsafe-eval'", "")).not.toMatch(/unsafe|\*/);
  });
});
