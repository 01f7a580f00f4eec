import { once } from "node:events";
import http from "node:http";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { startFixtureHub } from "../support/fixture-hub.ts";
import { startDaemon, type TestDaemon } from "../support/start-daemon.ts";
import { runCli } from "./cli-process.ts";

const WITHOUT_MODEL = ["--models-load", ""];
const JSON_BODY = { "content-type": "application/json" };

const waiting = (note: string) => ({
  status: "downloading",
  progress: 0,
  total_bytes: 0,
  downloaded_bytes: 0,
  note: expect.stringMatching(new RegExp(`ECONNREFUSED.*${note}`)),
});

let daemon: TestDaemon;
let gone: string;

beforeAll(async () => {
  const hub = await startFixtureHub();
  await hub.close();
  gone = hub.url;
  daemon = await startDaemon({ args: WITHOUT_MODEL, env: { HUB_URL: gone } });
});

afterAll(() => daemon?.stop());

describe("a pull from a hub that cannot be reached", () => {
  it("reports each attempt in a stream and ends with advice", async () => {
    const answer = await fetch(`${daemon.url}/api/models/pull`, {
      method: "POST",
      headers: JSON_BODY,
      body: JSON.stringify({ name: "hf:owner/tiny", stream: true }),
    });
    const lines: unknown[] = (await answer.text())
      .trim()
      .split("\n")
      .map((line) => JSON.parse(line));
    expect(lines).toEqual([
      waiting("again in 0.5 s"),
      {
        error: {
          type: "model_error",
          code: "hub_unreachable",
          message: expect.stringContaining("HUB_URL"),
        },
      },
    ]);
  });

  it("reports attempts on the command line and exits with 'try later'", async () => {
    const { code, stderr, stdout } = await runCli(["pull", "hf:owner/tiny", "--url", daemon.url]);
    expect(code).toBe(6);
    expect(stdout).toBe("");
    expect(stderr).toMatch(/ECONNREFUSED.*again in 0\.5 s/);
    expect(stderr).toContain(`The hub at ${gone} cannot be reached`);
  });
});

describe("a proxy in the environment", () => {
  it("is used for the hub", async () => {
    const asked: string[] = [];
    const proxy = http.createServer((request, response) => {
      asked.push(request.url ?? "");
      response.writeHead(404).end();
    });
    // Node 24 opens a tunnel also for a hub without TLS.
    proxy.on("connect", (request, tunnel) => {
      asked.push(`http://${request.url}`);
      tunnel.end("HTTP/1.1 404 Not Found\r\n\r\n");
    });
    proxy.listen(0, "127.0.0.1");
    await once(proxy, "listening");
    const address = proxy.address();
    if (address === null || typeof address === "string") throw new Error("no port");
    const env = { HTTP_PROXY: `http://127.0.0.1:${address.port}`, HUB_URL: "http://hub.invalid" };
    const behind = await startDaemon({ args: WITHOUT_MODEL, env });
    try {
      const body = JSON.stringify({ name: "hf:owner/tiny" });
      await fetch(`${behind.url}/api/models/pull`, { method: "POST", headers: JSON_BODY, body });
      expect(asked[0]).toMatch(/^http:\/\/hub\.invalid(:80$|\/api\/models\/owner\/tiny)/);
    } finally {
      await behind.stop();
      proxy.close();
    }
  });
});
