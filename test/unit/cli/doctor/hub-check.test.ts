import { once } from "node:events";
import http from "node:http";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { hubCheck } from "../../../../src/cli/doctor/all-checks.ts";

let server: http.Server;
let hubUrl = "";
let status = 200;
let date: string | undefined;
let received: { url?: string | undefined; authorization?: string | undefined } = {};
beforeAll(async () => {
  server = http.createServer((request, response) => {
    received = { url: request.url, authorization: request.headers.authorization };
    response.sendDate = date === undefined;
    response.writeHead(status, date === undefined ? {} : { date }).end("{}");
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const address = server.address();
  hubUrl = `http://127.0.0.1:${typeof address === "object" ? address?.port : ""}`;
});
afterAll(() => {
  server.closeAllConnections();
  server.close();
});

async function look(options: { token?: string; hubUrl?: string; now?: () => number } = {}) {
  const check = hubCheck({ hubUrl, token: undefined, fetch, ...options });
  return await check.run(new AbortController().signal);
}

const verdicts = (findings: Awaited<ReturnType<typeof look>>) =>
  findings.map(({ name, verdict }) => `${name}: ${verdict}`);

describe("hubCheck", () => {
  it("accepts a hub that answers, takes the token and has the same time", async () => {
    [status, date] = [200, undefined];
    expect(verdicts(await look({ token: "hf_good" }))).toEqual(["Hub: ok", "Hub token: ok", "Clock: ok"]);
    expect(received).toEqual({ url: "/api/whoami-v2", authorization: "Bearer hf_good" });
    expect(verdicts(await look())).toEqual(["Hub: ok", "Clock: ok"]);
  });

  it("reports a refused token", async () => {
    [status, date] = [401, undefined];
    const findings = await look({ token: "hf_old" });
    expect(verdicts(findings)).toEqual(["Hub: ok", "Hub token: problem", "Clock: ok"]);
    expect(findings[1]?.cure).toContain(`${hubUrl}/settings/tokens`);
  });

  it("notes a mirror without accounts, and a hub with a server error", async () => {
    [status, date] = [404, undefined];
    expect(verdicts(await look({ token: "hf_any" }))).toEqual(["Hub: ok", "Hub token: note", "Clock: ok"]);
    status = 503;
    expect(verdicts(await look())[0]).toBe("Hub: note");
  });

  it("notes a hub that cannot be reached", async () => {
    const findings = await look({ hubUrl: "http://127.0.0.1:65535" });
    expect(verdicts(findings)).toEqual(["Hub: note"]);
    expect(findings[0]?.message).toContain("ECONNREFUSED");
  });

  it("notes a clock that differs from the hub's", async () => {
    status = 200;
    const now = Date.UTC(2026, 0, 1, 12);
    date = new Date(now - 4 * 60_000).toUTCString();
    expect(verdicts(await look({ now: () => now }))).toEqual(["Hub: ok", "Clock: ok"]);
    date = new Date(now - 3_600_000).toUTCString();
    const [, clock] = await look({ now: () => now });
    expect(clock).toMatchObject({
      verdict: "note",
      message: expect.stringContaining("1h 00m ahead of the hub's"),
    });
    date = "no date";
    expect(verdicts(await look())).toEqual(["Hub: ok"]);
  });

  it("reports an invalid token without sending it", async () => {
    const findings = await look({ token: "two words" });
    expect(verdicts(findings)).toEqual(["Hub token: problem"]);
    expect(JSON.stringify(findings)).not.toContain("two words");
  });
});
