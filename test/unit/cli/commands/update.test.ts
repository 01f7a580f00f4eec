import { once } from "node:events";
import http from "node:http";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { isNewer, newestRelease } from "../../../../src/cli/commands/update.ts";
import { runCli } from "../run-cli.ts";

const OURS = { version: "99.1.0", bin: { daybreak: "dist/src/launch/daybreak.mjs" } };

let server: http.Server;
let registry = "";
let answer: (response: http.ServerResponse) => void;
beforeAll(async () => {
  server = http.createServer((request, response) => {
    if (request.url === "/npm/daybreak/latest") answer(response);
    else response.writeHead(500).end();
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const address = server.address();
  registry = `http://127.0.0.1:${typeof address === "object" ? address?.port : ""}/npm`;
});
afterAll(() => {
  server.closeAllConnections();
  server.close();
});

function ask(options: { deadlineMs?: number; registry?: string } = {}) {
  return newestRelease({ registry, fetch, signal: new AbortController().signal, ...options });
}

describe("newestRelease", () => {
  it("returns the newest version", async () => {
    answer = (response) => void response.end(JSON.stringify(OURS));
    expect(await ask()).toEqual({ version: "99.1.0" });
  });

  it.each([
    ["an unknown package", 404, {}, "has no package with that name"],
    ["a server error", 503, {}, "answers with status 503"],
    ["another program", 200, { version: "3.0.0", bin: { dawn: "x" } }, "is another program"],
  ])("reports %s", async (_what, status, body, expected) => {
    answer = (response) => void response.writeHead(status).end(JSON.stringify(body));
    expect(await ask()).toEqual({ problem: expect.stringContaining(expected) });
  });

  it("reports a registry that does not answer", async () => {
    answer = () => {};
    expect(await ask({ deadlineMs: 50 })).toEqual({ problem: "127.0.0.1 has not answered within 0.05 s" });
    expect(await ask({ registry: "http://127.0.0.1:65535" })).toEqual({
      problem: expect.stringContaining("ECONNREFUSED"),
    });
  });
});

it("newestRelease refuses a registry that is no URL", async () => {
  expect(await ask({ registry: "npm" })).toEqual({ problem: "npm is not a registry address" });
});

describe("daybreak update", () => {
  it("prints whether there is a newer version and how to update", async () => {
    answer = (response) => void response.end(JSON.stringify(OURS));
    const env = { npm_config_registry: registry };
    const { code, stdout } = await runCli(["update"], { env });
    expect(code).toBe(0);
    expect(stdout).toContain("There is a newer version: 99.1.0.");
    expect(stdout).toContain("daybreak stop");
    const { stdout: json } = await runCli(["update", "--json"], { env });
    expect(JSON.parse(json)).toMatchObject({
      newest: "99.1.0",
      newer: true,
      installation: { kind: expect.any(String) },
    });
  });

  it("works offline", async () => {
    const { code, stdout } = await runCli(["update"], {
      env: { npm_config_registry: "http://127.0.0.1:65535" },
    });
    expect(code).toBe(0);
    expect(stdout).toContain("newer version: 127.0.0.1 cannot be reached");
  });
});

it.each([
  ["1.10.0", "1.9.9", true],
  ["1.0.0", "1.0.0", false],
  ["1.0.0", "1.0.0-rc.1", true],
  ["1.0.0-rc.10", "1.0.0-rc.9", true],
  ["1.0.0-beta", "1.0.0-rc", false],
  ["1.0.0-rc", "1.0.0-1", true],
  ["1.0.0-rc.1", "1.0.0-rc", true],
  ["1.0.0+build.9", "1.0.0", false],
  ["0.9.0", "1.0.0", false],
])("isNewer(%s, %s) is %s", (version, than, expected) => {
  expect(isNewer(version, than)).toBe(expected);
});
