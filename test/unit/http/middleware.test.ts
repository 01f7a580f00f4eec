import { describe, expect, test } from "vitest";
import { clientOf } from "../../../src/http/client-address.ts";
import { type FakeOptions, fakeApp } from "../../support/fake-services.ts";

function app(options: FakeOptions = {}) {
  return fakeApp(options);
}

const http = (settings: NonNullable<NonNullable<FakeOptions["config"]>["http"]>): FakeOptions => ({
  config: { http: settings },
});

async function statusOf(
  method: string,
  path: string,
  headers: Record<string, string>,
  options: FakeOptions = {},
): Promise<number> {
  const request = { method, headers: { host: "daemon.test:8080", ...headers } };
  return (await app(options).request(path, request)).status;
}

async function errorCode(response: Response): Promise<string> {
  const body: { error: { code: string } } = await response.json();
  return body.error.code;
}

describe("x-request-id", () => {
  test("is on every response, errors included", async () => {
    for (const path of ["/health", "/nowhere", "/api/models/unknown"]) {
      const response = await app().request(path);
      expect(response.headers.get("x-request-id")).toMatch(/^[0-9a-f-]{36}$/);
    }
  });

  test("is the client's if it is valid", async () => {
    const own = await app().request("/health", { headers: { "x-request-id": "trace-1:a/b" } });
    expect(own.headers.get("x-request-id")).toBe("trace-1:a/b");
    for (const bad of ["a b", "x".repeat(129), '"<script>']) {
      const response = await app().request("/health", { headers: { "x-request-id": bad } });
      expect(response.headers.get("x-request-id")).not.toBe(bad);
    }
  });
});

describe("CORS", () => {
  const origin = "https://page.test";

  test("allows any origin, method and header by default", async () => {
    const preflight = await app().request("/api/models/pull", {
      method: "OPTIONS",
      headers: {
        origin,
        "access-control-request-method": "DELETE",
        "access-control-request-headers": "authorization,x-custom",
      },
    });
    expect(preflight.status).toBe(204);
    expect(preflight.headers.get("access-control-allow-origin")).toBe("*");
    expect(preflight.headers.get("access-control-allow-methods")).toContain("DELETE");
    expect(preflight.headers.get("access-control-allow-headers")).toBe("authorization,x-custom");
    const error = await app().request("/nowhere", { headers: { origin } });
    expect(error.headers.get("access-control-allow-origin")).toBe("*");
  });

  test("allows private network access for allowed origins", async () => {
    const headers = {
      origin,
      "access-control-request-method": "GET",
      "access-control-request-private-network": "true",
    };
    const answer = async (origins?: string[]) => {
      const asked = app(origins ? http({ cors_origins: origins }) : {});
      const preflight = await asked.request("/api/models", { method: "OPTIONS", headers });
      return preflight.headers.get("access-control-allow-private-network");
    };
    expect(await answer()).toBe("true");
    expect(await answer([origin])).toBe("true");
    expect(await answer(["https://another.test"])).toBeNull();
  });

  test("allows only the listed origins", async () => {
    const restricted = app(http({ cors_origins: ["https://page.test/"] }));
    const own = await restricted.request("/health", { headers: { origin } });
    expect(own.headers.get("access-control-allow-origin")).toBe(origin);
  });

  test.each([
    ["a foreign one", "https://evil.test"],
    ["null, as of a sandboxed frame", "null"],
    ["one with the same beginning", "https://page.test.evil.test"],
    ["one with the same end", "https://evilpage.test"],
    ["another scheme", "http://page.test"],
    ["another port", "https://page.test:8443"],
  ])("refuses %s, even for a POST without a body", async (_kind, foreign) => {
    const restricted = app(http({ cors_origins: [origin] }));
    const response = await restricted.request("/api/models/fake/unload", {
      method: "POST",
      headers: { origin: foreign, host: "daemon.test:8080" },
    });
    expect(response.status).toBe(403);
    expect(response.headers.get("access-control-allow-origin")).toBeNull();
    expect(await errorCode(response)).toBe("forbidden_host");
  });

  describe("of a changing request without a body", () => {
    const cases = [
      ["POST", "/api/models/fake/unload"],
      ["POST", "/api/defaults/fake/use"],
      ["POST", "/api/system/shutdown"],
      ["POST", "/v1/responses/resp_1/cancel"],
      ["DELETE", "/api/models/fake"],
      ["DELETE", "/v1/responses/resp_1"],
    ] as const;
    test.each(cases)("refuses %s %s from a foreign page without a preflight", async (method, path) => {
      for (const headers of [
        { origin },
        { origin: "null" },
        { origin: "http://daemon.test:8081", "sec-fetch-site": "same-site" },
        { "sec-fetch-site": "cross-site" },
        { origin, "content-type": "text/plain" },
        { origin, "content-type": "application/x-www-form-urlencoded" },
        { origin, authorization: "Basic YTpi" },
      ]) {
        expect({ headers, status: await statusOf(method, path, headers) }).toEqual({ headers, status: 415 });
      }
    });

    test.each(cases)("accepts %s %s from all others", async (method, path) => {
      expect(await statusOf(method, path, {})).not.toBe(415);
      expect(await statusOf(method, path, { origin, "content-type": "application/json" })).not.toBe(415);
      expect(await statusOf(method, path, { origin, authorization: "Bearer any" })).not.toBe(415);
      expect(await statusOf(method, path, { origin: "http://daemon.test:8080" })).not.toBe(415);
      expect(await statusOf(method, path, { "sec-fetch-site": "same-origin" })).not.toBe(415);
      expect(await statusOf(method, path, { origin }, http({ cors_origins: [origin] }))).not.toBe(415);
    });
  });

  test("always allows the daemon's own page", async () => {
    const restricted = app(http({ cors_origins: [origin] }));
    const response = await restricted.request("/status", {
      headers: { origin: "http://box:8080", host: "box:8080" },
    });
    expect(response.status).toBe(200);
  });
});

describe("the Host check", () => {
  const local = http({ addr: "127.0.0.1", allowed_hosts: ["My.Box:80"] });

  test.each([
    "localhost",
    "LOCALHOST:8080",
    "localhost.",
    "127.0.0.1:8080",
    "127.1.2.3",
    "[::1]:8080",
    "app.localhost",
    "my.box:8080",
  ])("accepts %s when bound to loopback", async (host) => {
    expect((await app(local).request("/health", { headers: { host } })).status).toBe(200);
  });

  test.each([
    "evil.test",
    "evil.test:8080",
    "127.0.0.1.evil.test",
    "localhost.evil.test",
    "evil.test.",
    "[fe80::1]",
    "",
    "localhost:8080:evil",
    "evillocalhost",
  ])("refuses %j when bound to loopback", async (host) => {
    const response = await app(local).request("http://x/health", { headers: { host } });
    expect(response.status).toBe(403);
    expect(await errorCode(response)).toBe("forbidden_host");
  });

  test("is off when bound to all addresses, and for the IPC socket", async () => {
    const foreign = { headers: { host: "evil.test" } };
    expect((await app().request("/health", foreign)).status).toBe(200);
    expect((await app(local).request("/health", foreign, { ipc: true })).status).toBe(200);
  });
});

describe("API keys", () => {
  const keyed = { config: { api_keys: ["first", "second-key"] } };
  const status = async (headers: Record<string, string>, env = {}): Promise<number> =>
    (await app(keyed).request("/status", { headers }, env)).status;

  test.each([
    { authorization: "Bearer first" },
    { authorization: "bearer second-key" },
    { authorization: "BEARER  first" },
    { "x-api-key": "second-key" },
    { "x-api-key": "first", authorization: "Bearer wrong" },
  ])("%j passes", async (headers) => {
    expect(await status(headers)).toBe(200);
  });

  test.each([
    {},
    { authorization: "Bearer wrong" },
    { authorization: "Bearer" },
    { authorization: "Bearer firstfirst" },
    { authorization: "Basic Zmlyc3Q6Zmlyc3Q=" },
    { authorization: "first" },
    { "x-api-key": "" },
    { "x-api-key": "First" },
  ])("%j is 401", async (headers) => {
    expect(await status(headers)).toBe(401);
  });

  test("401 has WWW-Authenticate and the native error format", async () => {
    const response = await app(keyed).request("/status");
    expect(response.headers.get("www-authenticate")).toBe('Bearer realm="daybreak"');
    expect(await errorCode(response)).toBe("unauthorized");
  });

  test.each([
    [{}, "requires an API key"],
    [{ "x-api-key": "wrong" }, "This API key is not one of the daemon's."],
  ])("401 for %j has the message %j", async (headers, message) => {
    expect(await (await app(keyed).request("/status", { headers })).text()).toContain(message);
  });

  test("/health, a preflight and the IPC socket need none", async () => {
    expect((await app(keyed).request("/health")).status).toBe(200);
    expect(await status({}, { ipc: true })).toBe(200);
    const preflight = await app(keyed).request("/status", {
      method: "OPTIONS",
      headers: { origin: "https://page.test", "access-control-request-method": "GET" },
    });
    expect(preflight.status).toBe(204);
  });

  test("the files of the page need none, but all other paths do", async () => {
    for (const path of ["/ui/", "/ui", "/ui/page.css", "/ui/manifest.webmanifest", "/browser/page.js"])
      expect({ path, status: (await app(keyed).request(path)).status }).not.toMatchObject({ status: 401 });
    for (const path of [
      "/",
      "/ui/other",
      "/ui/page.css/",
      "/ui/../api/models",
      "/ui/%2e%2e/api/models",
      "/ui//",
      "/browser/page.js/files",
      "/browser/",
      "/browser/../status",
      "/UI/",
      "/api/models",
      "/v1/models",
      "/metrics",
      "/docs",
      "/docs/console.js",
      "/openapi.json",
    ])
      expect({ path, status: (await app(keyed).request(path)).status }).toEqual({ path, status: 401 });
  });

  test("paths similar to /health need one", async () => {
    for (const path of ["/health/", "/health/../status", "//health", "/HEALTH"]) {
      expect((await app(keyed).request(path)).status).toBe(401);
    }
  });

  test("HTTP Basic is accepted from the daemon's own page only", async () => {
    const authorization = `Basic ${Buffer.from("anyone:second-key").toString("base64")}`;
    const opened = { "sec-fetch-site": "none", "sec-fetch-mode": "navigate" };
    const navigation = await app(keyed).request("/docs", { headers: opened });
    expect(navigation.headers.get("www-authenticate")).toMatch(/^Basic realm="daybreak"/);
    const script = { "sec-fetch-site": "same-origin", "sec-fetch-mode": "cors" };
    const scripted = await app(keyed).request("/api/models", { headers: script });
    expect(scripted.headers.get("www-authenticate"), "the page asks by itself").toBe(
      'Bearer realm="daybreak"',
    );
    expect(await status({ authorization, "sec-fetch-site": "same-origin" })).toBe(200);
    expect(await status({ authorization, "sec-fetch-site": "cross-site" })).toBe(401);
  });

  test("keys and bodies are never logged", async () => {
    const lines: string[] = [];
    await app({ ...keyed, log: (line) => lines.push(line) }).request("/api/models/load?key=first", {
      method: "POST",
      headers: { authorization: "Bearer first", "content-type": "application/json" },
      body: '{"alias": "a secret prompt", "context_size": "first"}',
    });
    expect(lines.join("")).toContain('"path":"/api/models/load"');
    expect(lines.join("")).not.toMatch(/first|secret/);
  });
});

describe("the rate limit", () => {
  test("answers 429 with Retry-After, except for /health and the IPC socket", async () => {
    const limited = app(http({ rate_limit: 2 }));
    expect((await limited.request("/status")).status).toBe(200);
    expect((await limited.request("/status")).status).toBe(200);
    const third = await limited.request("/status");
    expect(third.status).toBe(429);
    expect(Number(third.headers.get("retry-after"))).toBeGreaterThan(0);
    expect(Number(third.headers.get("retry-after"))).toBeLessThanOrEqual(30);
    expect(await errorCode(third)).toBe("rate_limited");
    expect((await limited.request("/health")).status).toBe(200);
    expect((await limited.request("/status", {}, { ipc: true })).status).toBe(200);
  });

  test.each([
    ["10.0.0.7", "10.0.0.7"],
    ["::ffff:10.0.0.7", "10.0.0.7"],
    ["::FFFF:a00:7", "10.0.0.7"],
    ["::ffff:127.0.0.1", "127.0.0.1"],
    ["2001:db8:1:2:3:4:5:6", "2001:db8:1:2"],
    ["2001:db8:1:2::9", "2001:db8:1:2"],
    ["2001:db8::9", "2001:db8:0:0"],
    ["::1", "::1"],
    [undefined, ""],
    ["fe80::1%eth0", "fe80:0:0:0"],
  ])("counts the address %s as client %s", (address, client) => {
    expect(clientOf(address)).toBe(client);
  });

  test("is off by default", async () => {
    const unlimited = app();
    for (let i = 0; i < 100; i += 1) expect((await unlimited.request("/health")).status).toBe(200);
  });
});

describe("the daemon's state", () => {
  test.each([
    ["starting", "starting"],
    ["draining", "shutting_down"],
  ] as const)("while %s answers 503 %s with Retry-After", async (state, code) => {
    const busy = app({ overrides: { life: { state } } });
    const response = await busy.request("/api/models/fake/unload", { method: "POST" });
    expect(response.status).toBe(503);
    expect(await errorCode(response)).toBe(code);
    expect(Number(response.headers.get("retry-after"))).toBeGreaterThan(0);
    expect((await busy.request("/api/models")).status).toBe(200);
    expect((await busy.request("/metrics")).status).toBe(200);
    const health = await busy.request("/health");
    expect(health.status).toBe(503);
    expect(await health.json()).toEqual({ status: state });
  });
});
