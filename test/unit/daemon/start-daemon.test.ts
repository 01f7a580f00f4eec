import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import http from "node:http";
import net from "node:net";
import os from "node:os";
import path from "node:path";
import { pino } from "pino";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { configSchema, type ConfigInput } from "../../../src/config/schema.ts";
import type { createServices } from "../../../src/daemon/create-services.ts";
import { startDaemon, type RunningDaemon } from "../../../src/daemon/start-daemon.ts";
import { ipcAddress, ipcUrl } from "../../support/ipc-address.ts";
import { FakeModels, fakeModel } from "../../support/fake-models.ts";
import { unless } from "../../support/need.ts";
import { fakeServices } from "../../support/fake-services.ts";

const IPV6 = unless(
  Object.values(os.networkInterfaces()).some((all) => all?.some(({ address }) => address === "::1")),
  "no IPv6",
);

let folder: string;
let daemons: RunningDaemon[];

beforeEach(() => {
  folder = mkdtempSync(path.join(os.tmpdir(), "daybreak-daemon-"));
  daemons = [];
});

afterEach(async () => {
  await Promise.all(daemons.map((daemon) => daemon.stop()));
  rmSync(folder, { recursive: true });
});

async function start(config: ConfigInput = {}, models = new FakeModels(), explicitOptions: string[] = []) {
  const { http: httpConfig, ...rest } = config;
  const parsed = configSchema.parse({
    socket: ipcAddress(folder),
    cache_dir: folder,
    http: { addr: "127.0.0.1", port: 0, ...httpConfig },
    ...rest,
  });
  const compose: typeof createServices = async (_config, { draining, shutdown }) =>
    Object.assign(
      fakeServices({
        models,
        draining,
        overrides: {
          config: parsed,
          shutdown,
          life: { state: "starting" },
          endpoints: { http: "", ipc: "" },
        },
      }),
      { close: () => models.close() },
    );
  const options = { logger: pino({ level: "silent" }), explicitOptions: new Set(explicitOptions) };
  const daemon = await startDaemon(parsed, options, compose);
  daemons.push(daemon);
  return { daemon, models };
}

function overIpc(
  socketPath: string,
  route: string,
  method = "GET",
): Promise<{ status: number; body: string }> {
  return new Promise((resolve, reject) => {
    const request = http.request({ socketPath, path: route, method }, (response) => {
      let body = "";
      response.setEncoding("utf8");
      response.on("data", (chunk: string) => (body += chunk));
      response.on("end", () => resolve({ status: response.statusCode ?? 0, body }));
    });
    request.on("error", reject);
    request.end();
  });
}

describe("startDaemon", () => {
  test("serves over TCP and over the socket, and reports both endpoints", async () => {
    const { daemon } = await start();
    await daemon.ready;
    const status: { http_endpoint: string; ipc_endpoint: string } = await (
      await fetch(`${daemon.url}/api/system/status`)
    ).json();
    expect(status.http_endpoint).toBe(daemon.url);
    expect(status.ipc_endpoint).toBe(ipcUrl(daemon.socket));
    expect((await overIpc(daemon.socket, "/health")).status).toBe(200);
  });

  test("answers 503 until the first models are loaded", async () => {
    const gate = Promise.withResolvers<void>();
    const models = new FakeModels([fakeModel({ state: "available" })]);
    const load = models.load.bind(models);
    models.load = async (options) => {
      await gate.promise;
      return await load(options);
    };
    const { daemon } = await start({}, models);
    const starting = await fetch(`${daemon.url}/health`);
    expect(starting.status).toBe(503);
    expect(await starting.json()).toEqual({ status: "starting" });
    gate.resolve();
    await daemon.ready;
    expect((await fetch(`${daemon.url}/health`)).status).toBe(200);
    expect(models.loads).toEqual([{ alias: "fake" }]);
  });

  test("loads the configured models and serves without those that fail", async () => {
    const models = new FakeModels([fakeModel({ alias: "a", state: "available" }), fakeModel({ alias: "b" })]);
    const { daemon } = await start({ models: { load: ["missing", "a", "b"] } }, models);
    await daemon.ready;
    expect((await models.get("a")).state).toBe("loaded");
    expect((await fetch(`${daemon.url}/health`)).status).toBe(200);
  });

  test("rejects a port in use with advice, and removes the socket", async () => {
    const { daemon } = await start();
    const port = Number(new URL(daemon.url).port);
    const second = start({ http: { port }, socket: ipcAddress(folder, "second") });
    await expect(second).rejects.toThrow(
      `Cannot listen on 127.0.0.1, port ${port}: another program is using it. "daybreak doctor" says whether that is a daemon; end it, or choose another port with --http-port.`,
    );
    await expect(overIpc(ipcAddress(folder, "second"), "/health")).rejects.toThrow("ENOENT");
  });

  // Named pipes of Windows have no folder.
  test.skipIf(process.platform === "win32")(
    "rejects an unusable socket if it was set explicitly, and otherwise runs without",
    async () => {
      const socket = "/dev/null/daybreak.sock";
      await expect(start({ socket }, new FakeModels(), ["socket"])).rejects.toThrow(
        /in the folder \/dev\/null/,
      );
      const { daemon } = await start({ socket });
      expect([daemon.socket, daemon.services.endpoints.ipc]).toEqual(["", ""]);
      expect((await fetch(`${daemon.url}/status`)).status).toBe(200);
    },
  );

  test("rejects the socket of another daemon", async () => {
    await start();
    await expect(start()).rejects.toThrow(/another daemon listens/i);
  });

  test.skipIf(IPV6.isMissing)(
    `answers on IPv4 and IPv6 by default and reports 0.0.0.0${IPV6.note}`,
    async () => {
      const { daemon } = await start({ http: { addr: "0.0.0.0", rate_limit: 1 } });
      const { port } = new URL(daemon.url);
      expect([daemon.url, daemon.services.endpoints.http]).toEqual([
        `http://127.0.0.1:${port}`,
        `http://0.0.0.0:${port}`,
      ]);
      for (const host of ["127.0.0.1", "[::1]"]) {
        expect((await fetch(`http://${host}:${port}/status`)).status).toBe(200);
        expect((await fetch(`http://${host}:${port}/status`)).status).toBe(429);
      }
    },
  );

  test.skipIf(IPV6.isMissing)(`listens on IPv4 only for an explicit 0.0.0.0${IPV6.note}`, async () => {
    const { daemon } = await start({ http: { addr: "0.0.0.0" } }, new FakeModels(), ["http.addr"]);
    const { port } = new URL(daemon.url);
    expect((await fetch(`http://127.0.0.1:${port}/status`)).status).toBe(200);
    await expect(fetch(`http://[::1]:${port}/status`)).rejects.toThrow("fetch failed");
  });

  test("listens on TCP only without a socket", async () => {
    const { daemon } = await start({ socket: "" });
    expect(daemon.services.endpoints.ipc).toBe("");
    expect((await fetch(`${daemon.url}/status`)).status).toBe(200);
  });
});

/** Starts a daemon with a request that runs until the test finishes it. */
async function startBusy(config: ConfigInput = {}) {
  const models = new FakeModels();
  const entered = Promise.withResolvers<void>();
  const gate = Promise.withResolvers<void>();
  models.unload = async () => {
    entered.resolve();
    await gate.promise;
  };
  const { daemon } = await start(config, models);
  await daemon.ready;
  const running = fetch(`${daemon.url}/api/models/fake/unload`, { method: "POST" });
  running.catch(() => undefined);
  await entered.promise;
  return { daemon, running, finish: () => gate.resolve() };
}

describe("draining", () => {
  test("lets running requests finish while new ones get 503", async () => {
    const { daemon, running, finish } = await startBusy();
    const stopped = daemon.stop();
    const refused = await fetch(`${daemon.url}/api/models/fake/unload`, { method: "POST" });
    expect(refused.status).toBe(503);
    expect(await refused.json()).toMatchObject({ error: { code: "shutting_down", type: "overloaded" } });
    expect((await fetch(`${daemon.url}/health`)).status).toBe(503);
    finish();
    expect((await running).status).toBe(200);
    await stopped;
    await expect(fetch(`${daemon.url}/health`)).rejects.toThrow("fetch failed");
    await expect(overIpc(daemon.socket, "/health")).rejects.toThrow("ENOENT");
  });

  test("aborts requests at the deadline", async () => {
    const { daemon, running, finish } = await startBusy({ drain_timeout: "50ms" });
    await daemon.stop();
    await expect(running).rejects.toThrow("fetch failed");
    finish();
  });

  test("does not wait for event streams", async () => {
    const { daemon } = await start();
    const stream = await fetch(`${daemon.url}/api/events`);
    await daemon.stop();
    expect(await stream.text()).toBe(": connected\n\n");
  });

  test("can be started over the socket", async () => {
    const { daemon } = await start();
    await daemon.ready;
    const answer = await overIpc(daemon.socket, "/api/system/shutdown", "POST");
    expect(JSON.parse(answer.body)).toEqual({ status: "shutting_down" });
    await daemon.stopped;
  });
});

describe("HttpListener", () => {
  test("ignores an upgrade to another protocol than WebSocket", async () => {
    const { daemon } = await start();
    await daemon.ready;
    const socket = net.connect(Number(new URL(daemon.url).port), "127.0.0.1");
    socket.write(
      "GET /health HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade, HTTP2-Settings, close\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABkAAQ\r\n\r\n",
    );
    const [head]: unknown[] = await once(socket, "data");
    expect(String(head)).toMatch(/^HTTP\/1\.1 200 OK/);
    socket.destroy();
  });

  test("answers a chunked body beyond the limit with 413", async () => {
    const { daemon } = await start({ http: { body_limit: 2048 } });
    await daemon.ready;
    const socket = net.connect(Number(new URL(daemon.url).port), "127.0.0.1");
    socket.on("error", () => undefined);
    socket.write(
      "POST /api/models/load HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n",
    );
    const chunk = `400\r\n${" ".repeat(1024)}\r\n`;
    socket.write(chunk.repeat(4));
    const [head]: unknown[] = await once(socket, "data");
    expect(String(head)).toMatch(/^HTTP\/1\.1 413 /);
    socket.destroy();
  });

  test("limits the rate by the client's address", async () => {
    const { daemon } = await start({ http: { rate_limit: 1 } });
    await daemon.ready;
    expect((await fetch(`${daemon.url}/status`)).status).toBe(200);
    expect((await fetch(`${daemon.url}/status`)).status).toBe(429);
    expect((await overIpc(daemon.socket, "/status")).status).toBe(200);
  });
});
