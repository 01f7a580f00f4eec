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

/** Verdict and message of each finding, by its name. */
async function look(socket: string, port: number, addr = "127.0.0.1") {
  const where = { socket, http: { addr, port, isChosen: addr !== "0.0.0.0" }, apiKey: undefined };
  const { signal } = new AbortController();
  const daemon = findDaemon(where, signal);
  const findings = await daemonCheck({ where, daemon, version: "1.0.0" }).look(signal);
  return Object.fromEntries(findings.map(({ name, verdict, message }) => [name, `${verdict}: ${message}`]));
}

async function noSocket(): Promise<string> {
  return path.join(await temporaryFolder(), "d.sock");
}

const portOf = (url: string): number => Number(new URL(url).port);

/** A program that takes connections and is not a daemon. */
async function stranger(where: net.ListenOptions): Promise<net.Server> {
  const server = net.createServer((socket) => socket.on("error", () => {}).end("220 mail\r\n"));
  server.listen(where);
  await once(server, "listening");
  onTestFinished(() => void server.close());
  return server;
}

/** A port at which nobody listens any more. */
async function freePort(): Promise<number> {
  const server = await stranger({ port: 0, host: "127.0.0.1" });
  const address = server.address();
  server.close();
  await once(server, "close");
  return typeof address === "object" && address ? address.port : 0;
}

/** Runs the command where nothing but it is looked at. */
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

describe.skipIf(process.platform === "win32")("the daemon and its places", () => {
  it("are free where none runs", async () => {
    const socket = await noSocket();
    const port = await freePort();
    expect(await look(socket, port)).toEqual({
      Daemon: "ok: does not run; daybreak serve, run and chat start one",
      Port: `ok: 127.0.0.1:${port} is free`,
      Socket: `ok: ${socket} is free`,
    });
    expect(await look("", 0)).toMatchObject({
      Port: "ok: chosen by the system at each start",
      Socket: expect.stringMatching(/^note: switched off/),
    });
  });

  it("are the daemon's where one runs", async () => {
    await using byPort = await startFakeDaemon(ROUTES);
    await using bySocket = await startFakeDaemon(ROUTES, { ipc: true });
    expect(await look(bySocket.socket, portOf(byPort.url))).toEqual({
      Daemon: "ok: runs, version 1.0.0, 1 model in memory",
      Port: `ok: 127.0.0.1:${portOf(byPort.url)}: the daemon listens there`,
      Socket: `ok: ${bySocket.socket}: the daemon listens there`,
    });
  });

  it("are not the daemon's where another one has its port", async () => {
    await using another = await startFakeDaemon(ROUTES);
    const port = portOf(another.url);
    const at = async (http_endpoint: string): Promise<string | undefined> => {
      const status = { ...STATUS, http_endpoint };
      const routes = { ...ROUTES, "GET /api/system/status": status };
      await using bySocket = await startFakeDaemon(routes, { ipc: true });
      return (await look(bySocket.socket, port))["Port"];
    };
    expect(await at(`http://0.0.0.0:${port}`)).toBe(`ok: 127.0.0.1:${port}: the daemon listens there`);
    expect(await at("http://127.0.0.1:1234")).toBe(
      `note: 127.0.0.1:${port}: another daemon listens there; the one at the socket listens at http://127.0.0.1:1234`,
    );
    expect(await at("")).toMatch(
      /^note: .* another daemon listens there; the one at the socket has no port$/,
    );
  });

  it("are called by the port alone where the daemon may listen at another address", async () => {
    await using byPort = await startFakeDaemon(ROUTES);
    await using bySocket = await startFakeDaemon(ROUTES, { ipc: true });
    const port = portOf(byPort.url);
    const found = await look(bySocket.socket, port, "0.0.0.0");
    expect(found["Port"]).toBe(`ok: ${port}: the daemon listens there`);
  });

  it("say nothing of the port where the daemon that runs does not use it", async () => {
    await using bySocket = await startFakeDaemon(ROUTES, { ipc: true });
    expect(Object.keys(await look(bySocket.socket, await freePort()))).toEqual(["Daemon", "Socket"]);
  });

  it("may be a daemon of before an update, or one that is starting", async () => {
    const status = { ...STATUS, version: "0.9.0" };
    await using old = await startFakeDaemon({ ...ROUTES, "GET /api/system/status": status }, { ipc: true });
    expect((await look(old.socket, 0))["Daemon"]).toBe("note: runs version 0.9.0, but this is 1.0.0");
    await using young = await startFakeDaemon({ "GET /health": { status: "starting" } }, { ipc: true });
    expect((await look(young.socket, 0))["Daemon"]).toBe("note: runs, and is starting");
  });

  it("may be taken by others", async () => {
    const socket = await noSocket();
    await stranger({ path: socket });
    const address = (await stranger({ port: 0, host: "127.0.0.1" })).address();
    const port = typeof address === "object" && address ? address.port : 0;
    expect(await look(socket, port)).toMatchObject({
      Port: `problem: 127.0.0.1:${port} is taken by another program`,
      Socket: `problem: ${socket} belongs to a program that does not answer as a daemon does`,
    });
    await using another = await startFakeDaemon(ROUTES);
    expect((await look(await noSocket(), portOf(another.url)))["Port"]).toMatch(
      /^note: .* under another account$/,
    );
  });

  it.skipIf(IPV6.isMissing)(
    `may be taken where IPv6 alone is served, of which the default is a part${IPV6.note}`,
    async () => {
      const address = (await stranger({ port: 0, host: "::", ipv6Only: true })).address();
      const port = typeof address === "object" && address ? address.port : 0;
      const [all, chosen] = [
        await look(await noSocket(), port, "0.0.0.0"),
        await look(await noSocket(), port),
      ];
      expect(all["Port"]).toBe(`problem: 0.0.0.0:${port} is taken by another program`);
      expect(chosen["Port"]).toBe(`ok: 127.0.0.1:${port} is free`);
    },
  );

  it("may have a socket's path that is too long", async () => {
    const socket = `/tmp/${"x".repeat(120)}.sock`;
    expect((await look(socket, 0))["Socket"]).toMatch(/^problem: .* is 130 bytes long; the system allows/);
  });

  it("may be blocked by a file that is not a socket", async () => {
    const file = await noSocket();
    writeFileSync(file, "");
    expect((await look(file, 0))["Socket"]).toBe(`problem: ${file} exists and is not a socket`);
  });
});

describe("daybreak doctor", () => {
  it("has a line for each thing, and what to do beneath", async () => {
    const { code, stdout, stderr } = await doctor({});
    expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
    const names = [...stdout.matchAll(/^(?:ok|note|problem) +(\w+(?: \w+)?)/gm)].map(([, name]) => name);
    expect(names.join(", ")).toBe(
      "Runtime, Processors, Memory, Configuration, Daemon, Port, Socket, Sandbox, GPU, Cache folder, Models, Hub",
    );
    expect(stdout).toMatch(/^note {5}Hub {12}http:.* cannot be reached .*\n {24}Models on disk work/m);
  });

  it.skipIf(process.platform === "win32")("looks at the socket that it is given", async () => {
    await using daemon = await startFakeDaemon(ROUTES, { ipc: true });
    const { stdout } = await doctor({}, "--socket", daemon.socket);
    expect(stdout).toContain(`${daemon.socket}: the daemon listens there`);
  });

  it("ends with 1 when there is a problem, and can say it as JSON", async () => {
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

async function fleetCheckLook(fleet: object | undefined, isConfigured: boolean) {
  await using daemon = await startFakeDaemon({
    "GET /health": { status: "ok" },
    ...(fleet && { "GET /api/fleet": fleet }),
  });
  const { signal } = new AbortController();
  const http = { addr: "127.0.0.1", port: Number(new URL(daemon.url).port), isChosen: true };
  const found = findDaemon({ socket: daemon.socket, http, apiKey: undefined }, signal);
  return await fleetCheck(found, isConfigured).look(signal);
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
])("of %j the doctor says %s", async (fleet, verdict, message) => {
  const [finding] = await fleetCheckLook(fleet, true);
  expect(finding).toMatchObject({ name: "Fleet", verdict, message: expect.stringMatching(message) });
});

test("a fleet that no configuration names is told of where the daemon has joined it", async () => {
  expect(await fleetCheckLook({ ...ALONE, connected: true }, false)).toMatchObject([
    { verdict: "ok", message: "joined as desk, 1 machine" },
  ]);
  expect(await fleetCheckLook({ ...ALONE, joined: false }, false)).toEqual([]);
  expect(await fleetCheckLook(undefined, false)).toEqual([]);
});
