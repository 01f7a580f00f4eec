import { once } from "node:events";
import {
  existsSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import net from "node:net";
import os from "node:os";
import path from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { postJson } from "../support/post-json.ts";
import {
  DaemonDidNotStart,
  startDaemon,
  type DaemonOptions,
  type TestDaemon,
} from "../support/start-daemon.ts";
import { PROC } from "../support/proc.ts";

/** Longer than the time within which two signals count as one. */
const SAME_SIGNAL_MS = 300;

let folder: string;
const started: TestDaemon[] = [];

beforeAll(() => {
  folder = mkdtempSync(path.join(os.tmpdir(), "daybreak-life-"));
});

afterAll(async () => {
  await Promise.all(started.map((daemon) => daemon.stop()));
  rmSync(folder, { recursive: true });
});

async function start(options: DaemonOptions = {}): Promise<TestDaemon> {
  const daemon = await startDaemon(options);
  started.push(daemon);
  return daemon;
}

async function startFailure(options: DaemonOptions): Promise<DaemonDidNotStart> {
  try {
    await start(options);
  } catch (error) {
    if (error instanceof DaemonDidNotStart) return error;
    throw error;
  }
  throw new Error("the daemon started");
}

function children(pid: number): number[] {
  return readdirSync(`/proc/${pid}/task`).flatMap((thread) =>
    readFileSync(`/proc/${pid}/task/${thread}/children`, "utf8")
      .trim()
      .split(" ")
      .filter(Boolean)
      .map(Number),
  );
}

function alive(pid: number): boolean {
  try {
    // A zombie has ended; a container may have no init process to reap it.
    return !/^State:\s+Z/m.test(readFileSync(`/proc/${pid}/status`, "utf8"));
  } catch {
    return false;
  }
}

/** Starts a request that runs until its socket is destroyed, because its body never ends. */
async function holdOpen(daemon: TestDaemon): Promise<net.Socket> {
  const socket = net.connect(Number(new URL(daemon.url).port), "127.0.0.1");
  socket.on("error", () => undefined);
  await once(socket, "connect");
  socket.write(
    "POST /api/generate HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 99\r\n\r\n{",
  );
  // After a response on another connection, the daemon has read the earlier data.
  await fetch(`${daemon.url}/health`);
  return socket;
}

async function health({ url }: TestDaemon): Promise<number> {
  return (await fetch(`${url}/health`)).status;
}

function generate(daemon: TestDaemon, maxTokens: number): Promise<Response> {
  return postJson(`${daemon.url}/api/generate`, { prompt: "hi", max_tokens: maxTokens, stream: true });
}

/** Options without a model, for a faster start. */
const WITHOUT_MODEL = ["--models-load", ""];

describe("a daemon that cannot load its model, loads none on demand, and listens on all addresses", () => {
  let daemon: TestDaemon;

  beforeAll(async () => {
    daemon = await start({
      args: ["--models-load", "no-such-model", "--no-auto-load", "--http-addr", "0.0.0.0"],
    });
  });

  test("serves, and explains how to get the model", async () => {
    // Polled, because errors and announcements use different pipes.
    await expect
      .poll(() => daemon.logs())
      .toMatch(/Cannot load no-such-model: .*daybreak pull no-such-model/);
    expect((await fetch(`${daemon.url}/health`)).status).toBe(200);
    const answer = await generate(daemon, 1);
    expect(answer.status).toBe(404);
    expect(await answer.json()).toMatchObject({ error: { type: "not_found", code: "model_not_loaded" } });
  });

  test("warns that anyone on the network may use it", async () => {
    await expect.poll(() => daemon.logs()).toMatch(/no API key is set/);
    expect(daemon.url).toMatch(/^http:\/\/127\.0\.0\.1:/);
  });

  test("a second daemon on the port fails with advice", async () => {
    const failure = await startFailure({ args: ["--http-port", new URL(daemon.url).port] });
    expect(failure.code).toBe(1);
    expect(failure.logs).toMatch(/another program is using it\. .*--http-port/);
  });
});

describe("the start", () => {
  test("fails for an invalid option and names its source", async () => {
    const failure = await startFailure({ env: { SERVICE_HTTP_BODY_LIMIT: "lots" } });
    expect(failure.code).toBe(2);
    expect(failure.logs).toMatch(
      /SERVICE_HTTP_BODY_LIMIT: http\.body_limit: must be a whole number, got "lots"/,
    );
  });

  test("fails for an unreadable alias file and names it", async () => {
    const file = path.join(folder, "aliases.toml");
    writeFileSync(file, '[models."x"]\nrepo = "no-slash"\n');
    const failure = await startFailure({ args: ["--models-aliases-file", file] });
    expect(failure.code).toBe(1);
    expect(failure.logs).toMatch(/aliases\.toml: .*repo/);
  });

  test.skipIf(process.platform === "win32")("refuses a symbolic link at its socket's path", async () => {
    const socket = path.join(folder, "link.sock");
    symlinkSync(path.join(folder, "elsewhere"), socket);
    const failure = await startFailure({ env: { SERVICE_SOCKET: socket } });
    expect(failure.code).toBe(1);
    expect(failure.logs).toMatch(/symbolic link/);
    expect(existsSync(path.join(folder, "elsewhere"))).toBe(false);
  });
});

describe.skipIf(process.platform === "win32")("the end", () => {
  test("SIGTERM lets running requests finish, refuses new ones and exits with 0", async () => {
    const daemon = await start();
    expect(daemon.logs()).toMatch(
      /"msg":"Daybreak \d+\.\d+\.\d+ listens on http:\/\/127\.0\.0\.1:\d+ and ipc:\/\//,
    );
    expect(daemon.logs()).toMatch(/"msg":"Ready: daybreak-mini, \d+ tokens of context, \d+ threads?, CPU"/);
    expect(daemon.logs()).not.toMatch(/no API key/);
    // The format applies to both outputs.
    for (const line of daemon.logs().trim().split("\n")) expect(JSON.parse(line)).toHaveProperty("msg");
    const held = await holdOpen(daemon);
    const running = await generate(daemon, 30);
    daemon.kill("SIGTERM");
    await expect.poll(() => health(daemon)).toBe(503);
    const refused = await generate(daemon, 1);
    expect(refused.status).toBe(503);
    expect(refused.headers.get("retry-after")).toMatch(/^\d+$/);
    expect(await refused.json()).toMatchObject({ error: { type: "overloaded", code: "shutting_down" } });
    const lines = (await running.text()).trimEnd().split("\n");
    expect(JSON.parse(lines.at(-1)!)).toMatchObject({ done: true });
    held.destroy();
    expect(await daemon.exited).toEqual({ code: 0, signal: null });
    expect(existsSync(daemon.socket)).toBe(false);
  });

  test.skipIf(PROC.isMissing)(
    `a daemon is 503 until its model is loaded; a second signal ends it now, with its engines${PROC.note}`,
    async () => {
      let daemon = await start({ until: "listening" });
      let first = await health(daemon);
      // On a busy machine the model may be loaded already; then the test tries again.
      for (let again = 0; again < 4 && first !== 503; again += 1) {
        daemon = await start({ until: "listening" });
        first = await health(daemon);
      }
      expect(first).toBe(503);
      await expect.poll(() => health(daemon)).toBe(200);
      const engines = children(daemon.pid);
      expect(engines.length).toBeGreaterThan(0);
      await holdOpen(daemon);
      daemon.kill("SIGINT");
      await expect.poll(() => daemon.logs()).toMatch(/draining/);
      // Two signals in quick succession count as one.
      await new Promise((resolve) => setTimeout(resolve, SAME_SIGNAL_MS));
      daemon.kill("SIGINT");
      expect((await daemon.exited).code).toBe(130);
      await expect.poll(() => engines.filter(alive)).toEqual([]);
    },
  );

  test.skipIf(PROC.isMissing)(
    `after kill -9 no engine is left, and the next start replaces the socket${PROC.note}`,
    async () => {
      const cacheDir = path.join(folder, "killed");
      const socket = path.join(folder, "killed.sock");
      const env = { SERVICE_SOCKET: socket };
      const daemon = await start({ cacheDir, env });
      const engines = children(daemon.pid);
      expect(engines.length).toBeGreaterThan(0);
      daemon.kill("SIGKILL");
      await daemon.exited;
      await expect.poll(() => engines.filter(alive)).toEqual([]);
      expect(existsSync(socket)).toBe(true);
      const next = await start({ cacheDir, env, args: WITHOUT_MODEL });
      expect(await health(next)).toBe(200);
    },
  );
});
