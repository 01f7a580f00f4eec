import { existsSync, mkdtempSync, rmSync, statSync, symlinkSync, writeFileSync } from "node:fs";
import { createServer, type Server } from "node:http";
import { spawnSync } from "node:child_process";
import os from "node:os";
import path from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { DaemonStartError } from "../../../src/daemon/daemon-start-error.ts";
import { listenIpc } from "../../../src/daemon/ipc-socket.ts";

let folder: string;
let servers: Server[];

beforeEach(() => {
  folder = mkdtempSync(path.join(os.tmpdir(), "daybreak-ipc-"));
  servers = [];
});

afterEach(async () => {
  for (const server of servers) {
    if (server.listening) await new Promise((resolve) => server.close(resolve));
  }
  rmSync(folder, { recursive: true });
});

async function listen(name: string): Promise<void> {
  const server = createServer((_request, response) => response.end("here"));
  servers.push(server);
  await listenIpc(server, name);
}

/** Leaves a socket behind that nobody listens on, as a killed daemon does. */
function leaveStaleSocket(name: string): void {
  const code = `require("net").createServer().listen(${JSON.stringify(name)}, () => process.kill(process.pid, "SIGKILL"))`;
  spawnSync(process.execPath, ["-e", code]);
  expect(statSync(name).isSocket()).toBe(true);
}

describe.skipIf(process.platform === "win32")("the IPC socket", () => {
  test("is its owner's alone, and so is a folder made for it", async () => {
    const name = path.join(folder, "new", "daybreak.sock");
    const mask = process.umask();
    await listen(name);
    expect(statSync(name).mode & 0o777).toBe(0o600);
    expect(statSync(path.dirname(name)).mode & 0o777).toBe(0o700);
    expect(process.umask()).toBe(mask);
  });

  test("whose folder cannot be made is an error that says what to do", async () => {
    const file = path.join(folder, "file");
    writeFileSync(file, "");
    const attempt = listen(path.join(file, "run", "daybreak.sock"));
    await expect(attempt).rejects.toThrow(DaemonStartError);
    await expect(attempt).rejects.toThrow(/SERVICE_SOCKET/);
  });

  test("replaces what a killed daemon left", async () => {
    const name = path.join(folder, "daybreak.sock");
    leaveStaleSocket(name);
    await listen(name);
    expect(servers[0]!.listening).toBe(true);
  });

  test("refuses to take over from a daemon that lives", async () => {
    const name = path.join(folder, "daybreak.sock");
    await listen(name);
    await expect(listen(name)).rejects.toThrow(/Another daemon listens on .*daybreak\.sock/);
    expect(existsSync(name)).toBe(true);
  });

  test.each([
    ["a symbolic link", (name: string) => symlinkSync(path.join(folder, "target"), name), /symbolic link/],
    ["a file", (name: string) => writeFileSync(name, "precious"), /not a socket/],
  ])("refuses %s at its path and leaves it alone", async (_kind, make, message) => {
    const name = path.join(folder, "daybreak.sock");
    make(name);
    await expect(listen(name)).rejects.toThrow(DaemonStartError);
    await expect(listen(name)).rejects.toThrow(message);
    expect(existsSync(path.join(folder, "target"))).toBe(false);
  });

  test("says so when the path is longer than the system allows", async () => {
    await expect(listen(path.join(folder, "x".repeat(120)))).rejects.toThrow(
      /bytes long, but the system allows 10/,
    );
  });

  test("is gone after the server has closed", async () => {
    const name = path.join(folder, "daybreak.sock");
    await listen(name);
    await new Promise((resolve) => servers[0]!.close(resolve));
    expect(existsSync(name)).toBe(false);
  });
});
