import { ChildProcess, type spawn } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, statSync, writeFileSync, writeSync } from "node:fs";
import os from "node:os";
import path from "node:path";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { startDaemon } from "../../../../src/cli/background/start-daemon.ts";
import { DaemonClient } from "../../../../src/cli/client/daemon-client.ts";
import { type FakeRoutes, startFakeDaemon } from "../fake-daemon.ts";

let folder: string;
let logFile: string;
beforeEach(() => {
  folder = mkdtempSync(path.join(os.tmpdir(), "daybreak-start-"));
  logFile = path.join(folder, "cache", "daemon.log");
});
afterEach(() => rmSync(folder, { recursive: true }));

/** Fake spawn whose process writes `log` and then, with an exit code, ends. */
function fakeSpawn(log: string, exitCode?: number) {
  const calls: { command: string; args: readonly string[]; detached: boolean | undefined }[] = [];
  const fake = (command: string, args: readonly string[], options: Parameters<typeof spawn>[2]) => {
    calls.push({ command, args, detached: options.detached });
    const child = new ChildProcess();
    child.unref = () => {};
    const output = Array.isArray(options.stdio) ? options.stdio[1] : undefined;
    if (typeof output === "number") writeSync(output, log);
    if (exitCode !== undefined) setImmediate(() => child.emit("exit", exitCode, null));
    return child;
  };
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- spawn has seven overloads; one is called
  return { spawn: fake as unknown as typeof spawn, calls };
}

function clientOf(socketPath: string, signal: AbortSignal): DaemonClient {
  return new DaemonClient({ endpoints: [{ kind: "ipc", socketPath }], signal });
}

async function start(
  routes: FakeRoutes | undefined,
  fake: ReturnType<typeof fakeSpawn>,
  signal = new AbortController().signal,
) {
  await using daemon = routes && (await startFakeDaemon(routes, { ipc: true }));
  const client = clientOf(daemon?.socket ?? "/nonexistent/d.sock", signal);
  await startDaemon({ client, flags: ["--ui"], logFile, env: {}, signal, spawn: fake.spawn });
}

describe("startDaemon", () => {
  it("starts daybreak serve detached from the terminal and waits until it is ready", async () => {
    const healths = ["starting", "starting", "ok"];
    const fake = fakeSpawn("listening\n");
    await start(
      {
        "GET /health": (response: { end(body: string): void }) =>
          response.end(JSON.stringify({ status: healths.shift() })),
      },
      fake,
    );
    expect(healths).toEqual([]);
    expect(fake.calls).toMatchObject([
      {
        command: process.execPath,
        args: ["--disable-sigusr1", expect.stringMatching(/daybreak\.mjs$/), "serve", "--ui"],
        detached: true,
      },
    ]);
    expect(readFileSync(logFile, "utf8")).toBe("listening\n");
  });

  it("explains what to do when the log cannot be written", async () => {
    const { signal } = new AbortController();
    const client = clientOf("/nonexistent/d.sock", signal);
    const fake = fakeSpawn("");
    await expect(
      startDaemon({ client, flags: [], logFile: "/dev/null/daemon.log", env: {}, signal, spawn: fake.spawn }),
    ).rejects.toMatchObject({
      code: "daemon_start_failed",
      message: expect.stringMatching(
        /daemon\.log: a part of its path is not a folder\. Set SERVICE_CACHE_DIR/,
      ),
    });
    expect(fake.calls).toEqual([]);
  });

  it("makes the log readable for the user only", async () => {
    await start({ "GET /health": { status: "ok" } }, fakeSpawn(""));
    // Windows has other permissions than these.
    expect(process.platform === "win32" ? 0 : statSync(logFile).mode & 0o077).toBe(0);
  });

  it("reports the last log lines of this start when the daemon exits", async () => {
    await start({ "GET /health": { status: "ok" } }, fakeSpawn("an older run\n"));
    await expect(start(undefined, fakeSpawn("port 8080 is in use\n", 1))).rejects.toMatchObject({
      code: "daemon_start_failed",
      message: `The daemon ended with exit code 1. The end of its log, ${logFile}:\nport 8080 is in use`,
    });
  });

  it("succeeds when another daemon was started meanwhile", async () => {
    const attempt = start(
      { "GET /health": { status: "ok" } },
      fakeSpawn("another daemon listens there\n", 1),
    );
    await expect(attempt).resolves.toBeUndefined();
  });

  it("waits up to three minutes while the process runs", async () => {
    const fake = fakeSpawn("");
    const { signal } = new AbortController();
    const client = clientOf("/nonexistent/d.sock", signal);
    let now = performance.now();
    vi.spyOn(performance, "now").mockImplementation(() => now);
    /** Starts a daemon that answers after this many seconds. */
    const after = async (seconds: number) => {
      const begin = now;
      vi.spyOn(client, "health").mockImplementation(async () => {
        if (now - begin >= seconds * 1000) return "ok";
        now += 20_000;
        return undefined;
      });
      await startDaemon({ client, flags: [], logFile, env: {}, signal, spawn: fake.spawn });
    };
    await expect(after(120)).resolves.toBeUndefined();
    await expect(after(1000)).rejects.toMatchObject({ message: expect.stringMatching(/does not answer/) });
    vi.restoreAllMocks();
  });

  it("rotates a large log", async () => {
    await start({ "GET /health": { status: "ok" } }, fakeSpawn(""));
    writeFileSync(logFile, "x".repeat(5_000_001));
    await start({ "GET /health": { status: "ok" } }, fakeSpawn("new\n"));
    expect(readFileSync(logFile, "utf8")).toBe("new\n");
    expect(statSync(`${logFile}.old`).size).toBe(5_000_001);
  });

  it("stops waiting when interrupted", async () => {
    const controller = new AbortController();
    const reason = new Error("Ctrl-C");
    const waiting = start({ "GET /health": { status: "starting" } }, fakeSpawn(""), controller.signal);
    setImmediate(() => controller.abort(reason));
    await expect(waiting).rejects.toBe(reason);
  });
});
