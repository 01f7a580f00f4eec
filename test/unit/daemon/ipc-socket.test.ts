import { existsSync, mkdtempSync, rmSync, statSync, symlinkSync, writeFileSync } from "node:fs";
import { createServer, type Server } from "node:http";
import { spawnSync } from "node:child_process";
import os from "node:os";
import path from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { DaemonStartError, SocketUnavailableError } from "../../../src/daemon/daemon-start-error.ts";
import { listenIpc } from "../../../src/daemon/ipc-socket.ts";
import { FILE_RIGHTS } from "../../support/need.ts";

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

async function listen(name: string, platform = process.platform): Promise<void> {
  const server = createServer((_request, response) => response.end("here"));
  servers.push(server);
  await listenIpc(server, name, platform);
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

  test.each([
    [
      "cannot be made",
      (within: string) => path.join(within, "file", "run"),
      /a part of its path is not a folder/,
    ],
    ["is a loop of links", (within: string) => path.join(within, "loop"), /its links form a loop/],
    ["has too long a name", (within: string) => path.join(within, "x".repeat(300)), /bytes long|too long/],
    ["is of the kernel's", () => "/proc/self", /no sockets|not there|may not write|refuses it/],
  ])("whose folder %s is an error about the folder, with what to do", async (_, where, reason) => {
    writeFileSync(path.join(folder, "file"), "");
    symlinkSync("loop", path.join(folder, "loop"));
    const attempt = listen(path.join(where(folder), "d.sock"));
    await expect(attempt).rejects.toThrow(SocketUnavailableError);
    await expect(attempt).rejects.toThrow(reason);
    await expect(attempt).rejects.toThrow(
      /with --socket or SERVICE_SOCKET, or none with SERVICE_SOCKET=""\.$/,
    );
    await expect(attempt).rejects.not.toThrow(/port/);
  });

  test.skipIf(FILE_RIGHTS.isMissing)(
    `in a folder of somebody else is an error about the folder${FILE_RIGHTS.note}`,
    async () => {
      const attempt = listen("/etc/daybreak.sock");
      await expect(attempt).rejects.toThrow(
        "The socket cannot be created in the folder /etc: this user may not write there.",
      );
    },
  );

  test("on Windows is refused, and a named pipe asked for", async () => {
    await expect(listen(path.join(folder, "daybreak.sock"), "win32")).rejects.toThrow(
      /^On Windows the socket is a named pipe, \\\\\.\\pipe\\daybreak for one, and .* is a path\. Name another with --socket/,
    );
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

  test.each([
    ["linux", 107],
    ["darwin", 103],
  ] as const)("says so when the path is longer than %s allows", async (platform, longest) => {
    await expect(listen(path.join(folder, "x".repeat(120)), platform)).rejects.toThrow(
      new RegExp(`bytes long; the system allows ${longest}\\. .*SERVICE_SOCKET`),
    );
  });

  test("is gone after the server has closed", async () => {
    const name = path.join(folder, "daybreak.sock");
    await listen(name);
    await new Promise((resolve) => servers[0]!.close(resolve));
    expect(existsSync(name)).toBe(false);
  });
});
