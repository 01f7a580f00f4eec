import { spawnSync } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdtempSync, rmSync, statSync, symlinkSync, writeFileSync } from "node:fs";
import { createServer, Server } from "node:http";
import os from "node:os";
import path from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import {
  DaemonStartError,
  listenIpc,
  listenTcp,
  SocketUnavailableError,
} from "../../../src/daemon/listen.ts";
import { FILE_RIGHTS } from "../../support/need.ts";

const servers: Server[] = [];

/** A server on a machine that answers so when it is asked for all addresses of IPv6. */
class LimitedServer extends Server {
  readonly #code: string;

  constructor(code: string) {
    super();
    this.#code = code;
    servers.push(this);
  }

  override listen(...given: unknown[]): this {
    const [options] = given;
    if (typeof options !== "object" || options === null) throw new Error("options were expected");
    if (!("host" in options) || options.host !== "::") return super.listen(options);
    queueMicrotask(() => this.emit("error", Object.assign(new Error("refused"), { code: this.#code })));
    return this;
  }
}

describe("listen tcp", () => {
  afterEach(async () => {
    for (const server of servers.splice(0)) {
      if (server.listening) await once(server.close(), "close");
    }
  });

  test.each(["EAFNOSUPPORT", "EADDRNOTAVAIL", "EINVAL"])(
    "without IPv6 (%s) the default is all addresses of IPv4",
    async (code) => {
      const server = new LimitedServer(code);
      const { port, url } = await listenTcp(server, { addr: "0.0.0.0", port: 0, isChosen: false });
      expect(server.address()).toMatchObject({ address: "0.0.0.0", port });
      expect(url).toBe(`http://127.0.0.1:${port}`);
    },
  );

  test.each([
    ["EADDRINUSE", /port 1234: another program is using it/],
    ["EACCES", /port 1234: this user is not allowed to/],
  ])("a port that is refused (%s) is not tried with IPv4 alone", async (code, message) => {
    const server = new LimitedServer(code);
    const attempt = listenTcp(server, { addr: "0.0.0.0", port: 1234, isChosen: false });
    await expect(attempt).rejects.toThrow(DaemonStartError);
    await expect(attempt).rejects.toThrow(message);
    expect(server.listening).toBe(false);
  });

  test("IPv6 that was asked for and is not there is an error that says so", async () => {
    const attempt = listenTcp(new LimitedServer("EAFNOSUPPORT"), { addr: "::", port: 0, isChosen: true });
    await expect(attempt).rejects.toThrow(
      "this machine has no IPv6. Choose another address with --http-addr.",
    );
  });
});

/** Leaves a socket behind that nobody listens on, as a killed daemon does. */
function leaveStaleSocket(name: string): void {
  const code = `require("net").createServer().listen(${JSON.stringify(name)}, () => process.kill(process.pid, "SIGKILL"))`;
  spawnSync(process.execPath, ["-e", code]);
  expect(statSync(name).isSocket()).toBe(true);
}

describe("ipc socket", () => {
  let folder: string;

  let ipcSocketServers: Server[];

  beforeEach(() => {
    folder = mkdtempSync(path.join(os.tmpdir(), "daybreak-ipc-"));
    ipcSocketServers = [];
  });

  afterEach(async () => {
    for (const server of ipcSocketServers) {
      if (server.listening) await new Promise((resolve) => server.close(resolve));
    }
    rmSync(folder, { recursive: true });
  });

  async function listen(name: string, platform = process.platform): Promise<void> {
    const server = createServer((_request, response) => response.end("here"));
    ipcSocketServers.push(server);
    await listenIpc(server, name, platform);
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
      expect(ipcSocketServers[0]!.listening).toBe(true);
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
      await new Promise((resolve) => ipcSocketServers[0]!.close(resolve));
      expect(existsSync(name)).toBe(false);
    });
  });
});
