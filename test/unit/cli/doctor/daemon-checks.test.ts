import { once } from "node:events";
import { mkdirSync, writeFileSync } from "node:fs";
import net from "node:net";
import os from "node:os";
import path from "node:path";
import { describe, expect, it, onTestFinished, test } from "vitest";
import { daemonCheck, fleetCheck, findDaemon } from "../../../../src/cli/doctor/daemon-checks.ts";
import { ipcAddress } from "../../../support/ipc-address.ts";
import { unless } from "../../../support/need.ts";
import { temporaryFolder } from "../../models/temporary-folder.ts";
import { startFakeDaemon } from "../fake-daemon.ts";
import { runCli } from "../run-cli.ts";

const STATUS = { version: "1.0.0", models_loaded: 1 };
const ROUTES = { "GET /health": { status: "ok" }, "GET /api/system/status": STATUS };

const IPV6 = unless(
  Object.values(os.networkInterfaces()).some((all) => all?.some(({ family }) => family === "IPv6")),
  "no IPv6",
);

/** Verdict and message of each finding, by name. */
async function check(socket: string, port: number, addr = "127.0.0.1") {
  const where = { socket, http: { addr, port, isExplicit: addr !== "0.0.0.0" }, apiKey: undefined };
  const { signal } = new AbortController();
  const daemon = findDaemon(where, signal);
  const findings = await daemonCheck({ where, daemon, version: "1.0.0" }).run(signal);
  return Object.fromEntries(findings.map(({ name, verdict, message }) => [name, `${verdict}: ${message}`]));
}

async function noSocket(): Promise<string> {
  return path.join(await temporaryFolder(), "d.sock");
}

const portOf = (url: string): number => Number(new URL(url).port);

/** Starts a server that is no daemon. */
async function startOtherServer(where: net.ListenOptions): Promise<net.Server> {
  const server = net.createServer((socket) => socket.on("error", () => {}).end("220 mail\r\n"));
  server.listen(where);
  await once(server, "listening");
  onTestFinished(() => void server.close());
  return server;
}

/** Returns a port that is not in use. */
async function freePort(): Promise<number> {
  const server = await startOtherServer({ port: 0, host: "127.0.0.1" });
  const address = server.address();
  server.close();
  await once(server, "close");
  return typeof address === "object" && address ? address.port : 0;
}

/** Runs the command in an environment without other effects. */
async function doctor(env: Record<string, string>, ...args: string[]) {
  const folder = await temporaryFolder();
  const here = {
    SERVICE_CACHE_DIR: path.join(folder, "cache"),
    SERVICE_SOCKET: ipcAddress(folder),
    SERVICE_HTTP_ADDR: "127.0.0.1",
    SERVICE_HTTP_PORT: String(await freePort()),
    SERVICE_HUB_URL: "http://127.0.0.1:65535",
    SERVICE_GPU_MODE: "off",
    SERVICE_SANDBOX: "off",
  };
  mkdirSync(path.join(folder, "cache"));
  return await runCli(["doctor", ...args], { env: { ...here, ...env } });
}

describe.skipIf(process.platform === "win32")("daemonCheck", () => {
  it("reports a free port and socket without a daemon", async () => {
    const socket = await noSocket();
    const port = await freePort();
    expect(await check(socket, port)).toEqual({
      Daemon: "ok: does not run; daybreak serve, run and chat start one",
      Port: `ok: 127.0.0.1:${port} is free`,
      Socket: `ok: ${socket} is free`,
    });
    expect(await check("", 0)).toMatchObject({
      Port: "ok: chosen by the system at each start",
      Socket: expect.stringMatching(/^note: switched off/),
    });
  });

  it("reports a running daemon with its port and socket", async () => {
    await using byPort = await startFakeDaemon(ROUTES);
    await using bySocket = await startFakeDaemon(ROUTES, { ipc: true });
    expect(await check(bySocket.socket, portOf(byPort.url))).toEqual({
      Daemon: "ok: runs, version 1.0.0, 1 model in memory",
      Port: `ok: 127.0.0.1:${portOf(byPort.url)}: the daemon listens there`,
      Socket: `ok: ${bySocket.socket}: the daemon listens there`,
    });
  });

  it("reports another daemon at the port", async () => {
    await using another = await startFakeDaemon(ROUTES);
    const port = portOf(another.url);
    const at = async (http_endpoint: string): Promise<string | undefined> => {
      const status = { ...STATUS, http_endpoint };
      const routes = { ...ROUTES, "GET /api/system/status": status };
      await using bySocket = await startFakeDaemon(routes, { ipc: true });
      return (await check(bySocket.socket, port))["Port"];
    };
    expect(await at(`http://0.0.0.0:${port}`)).toBe(`ok: 127.0.0.1:${port}: the daemon listens there`);
    expect(await at("http://127.0.0.1:1234")).toBe(
      `note: 127.0.0.1:${port}: another daemon listens there; the one at the socket listens at http://127.0.0.1:1234`,
    );
    expect(await at("")).toMatch(
      /^note: .* another daemon listens there; the one at the socket has no port$/,
    );
  });

  it("names only the port when the address may differ", async () => {
    await using byPort = await startFakeDaemon(ROUTES);
    await using bySocket = await startFakeDaemon(ROUTES, { ipc: true });
    const port = portOf(byPort.url);
    const found = await check(bySocket.socket, port, "0.0.0.0");
    expect(found["Port"]).toBe(`ok: ${port}: the daemon listens there`);
  });

  it("omits the port when the running daemon uses another one", async () => {
    await using bySocket = await startFakeDaemon(ROUTES, { ipc: true });
    expect(Object.keys(await check(bySocket.socket, await freePort()))).toEqual(["Daemon", "Socket"]);
  });

  it("reports a daemon of another version, or one that is starting", async () => {
    const status = { ...STATUS, version: "0.9.0" };
    await using old = await startFakeDaemon({ ...ROUTES, "GET /api/system/status": status }, { ipc: true });
    expect((await check(old.socket, 0))["Daemon"]).toBe("note: runs version 0.9.0, but this is 1.0.0");
    await using starting = await startFakeDaemon({ "GET /health": { status: "starting" } }, { ipc: true });
    expect((await check(starting.socket, 0))["Daemon"]).toBe("note: runs, and is starting");
  });

  it("reports a port and a socket of other programs", async () => {
    const socket = await noSocket();
    await startOtherServer({ path: socket });
    const address = (await startOtherServer({ port: 0, host: "127.0.0.1" })).address();
    const port = typeof address === "object" && address ? address.port : 0;
    expect(await check(socket, port)).toMatchObject({
      Port: `problem: 127.0.0.1:${port} is taken by another program`,
      Socket: `problem: ${socket} belongs to a program that does not answer as a daemon does`,
    });
    await using another = await startFakeDaemon(ROUTES);
    expect((await check(await noSocket(), portOf(another.url)))["Port"]).toMatch(
      /^note: .* under another account$/,
    );
  });

  it.skipIf(IPV6.isMissing)(
    `reports a port that is taken on IPv6, which the default address includes${IPV6.note}`,
    async () => {
      const address = (await startOtherServer({ port: 0, host: "::", ipv6Only: true })).address();
      const port = typeof address === "object" && address ? address.port : 0;
      const [byDefault, explicit] = [
        await check(await noSocket(), port, "0.0.0.0"),
        await check(await noSocket(), port),
      ];
      expect(byDefault["Port"]).toBe(`problem: 0.0.0.0:${port} is taken by another program`);
      expect(explicit["Port"]).toBe(`ok: 127.0.0.1:${port} is free`);
    },
  );

  it("reports a socket path that is too long", async () => {
    const socket = `/tmp/${"x".repeat(120)}.sock`;
    expect((await check(socket, 0))["Socket"]).toMatch(/^problem: .* is 130 bytes long; the system allows/);
  });

  it("reports a file at the socket's path", async () => {
    const file = await noSocket();
    writeFileSync(file, "");
    expect((await check(file, 0))["Socket"]).toBe(`problem: ${file} exists and is not a socket`);
  });
});

describe("daybreak doctor", () => {
  it("prints a line for each finding, and the advice below", async () => {
    const { code, stdout, stderr } = await doctor({});
    expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
    const names = [...stdout.matchAll(/^(?:ok|note|problem) +(\w+(?: \w+)?)/gm)].map(([, name]) => name);
    expect(names.join(", ")).toBe(
      "Runtime, Processors, Memory, Configuration, Daemon, Port, Socket, Sandbox, GPU, Cache folder, Models, Hub",
    );
    expect(stdout).toMatch(/^note {5}Hub {12}http:.* cannot be reached .*\n {24}Models on disk work/m);
  });

  it.skipIf(process.platform === "win32")("checks the socket of --socket", async () => {
    await using daemon = await startFakeDaemon(ROUTES, { ipc: true });
    const { stdout } = await doctor({}, "--socket", daemon.socket);
    expect(stdout).toContain(`${daemon.socket}: the daemon listens there`);
  });

  it("exits with 1 and prints JSON when there is a problem", async () => {
    const { code, stdout, stderr } = await doctor({ SERVICE_HTTP_PORT: "seventy" }, "--json");
    expect(code).toBe(1);
    expect(JSON.parse(stderr).error).toMatchObject({
      code: "problems_found",
      message: "Found 1 problem; see above what to do about it.",
    });
    const { healthy, checks } = JSON.parse(stdout);
    expect(healthy).toBe(false);
    expect(checks).toContainEqual({
      name: "Configuration",
      verdict: "problem",
      message: expect.stringContaining("SERVICE_HTTP_PORT"),
      cure: expect.any(String),
    });
  });
});

const ALONE = { joined: true, connected: false, name: "desk", machines: [{}] };

async function checkFleet(fleet: object | undefined, isConfigured: boolean) {
  await using daemon = await startFakeDaemon({
    "GET /health": { status: "ok" },
    ...(fleet && { "GET /api/fleet": fleet }),
  });
  const { signal } = new AbortController();
  const http = { addr: "127.0.0.1", port: Number(new URL(daemon.url).port), isExplicit: true };
  const found = findDaemon({ socket: daemon.socket, http, apiKey: undefined }, signal);
  return await fleetCheck(found, isConfigured).run(signal);
}

test.each([
  [{ ...ALONE, joined: false }, "note", /started without it/],
  [{ ...ALONE, problem: "Authorization Violation" }, "problem", /refuses the user and password/],
  [{ ...ALONE, problem: "connect ECONNREFUSED" }, "problem", /not reachable \(connect ECONNREFUSED\)/],
  [
    { ...ALONE, connected: true, sharing_problem: "files are not shared" },
    "note",
    /1 machine; files are not shared/,
  ],
  [{ ...ALONE, connected: true, machines: [{}, {}] }, "ok", /joined as desk, 2 machines/],
  [undefined, "note", /no daemon tells of it/],
])("fleetCheck(%j) is %s", async (fleet, verdict, message) => {
  const [finding] = await checkFleet(fleet, true);
  expect(finding).toMatchObject({ name: "Fleet", verdict, message: expect.stringMatching(message) });
});

test("fleetCheck reports a fleet that the daemon has joined by a flag", async () => {
  expect(await checkFleet({ ...ALONE, connected: true }, false)).toMatchObject([
    { verdict: "ok", message: "joined as desk, 1 machine" },
  ]);
  expect(await checkFleet({ ...ALONE, joined: false }, false)).toEqual([]);
  expect(await checkFleet(undefined, false)).toEqual([]);
});
