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

/** Server that fails with this code when it listens on all IPv6 addresses. */
class LimitedServer extends Server {
  readonly #code: string;

  constructor(code: string) {
    super();
    this.#code = code;
    servers.push(this);
  }

  override listen(...parameters: unknown[]): this {
    const [options] = parameters;
    if (typeof options !== "object" || options === null) throw new Error("options were expected");
    if (!("host" in options) || options.host !== "::") return super.listen(options);
    queueMicrotask(() => this.emit("error", Object.assign(new Error("refused"), { code: this.#code })));
    return this;
  }
}

describe("listenTcp", () => {
  afterEach(async () => {
    for (const server of servers.splice(0)) {
      if (server.listening) await once(server.close(), "close");
    }
  });

  test.each(["EAFNOSUPPORT", "EADDRNOTAVAIL", "EINVAL"])(
    "listens on all IPv4 addresses without IPv6 (%s)",
    async (code) => {
      const server = new LimitedServer(code);
      const { port, url } = await listenTcp(server, { addr: "0.0.0.0", port: 0, isExplicit: false });
      expect(server.address()).toMatchObject({ address: "0.0.0.0", port });
      expect(url).toBe(`http://127.0.0.1:${port}`);
    },
  );

  test.each([
    ["EADDRINUSE", /port 1234: another program is using it/],
    ["EACCES", /port 1234: this user is not allowed to/],
  ])("does not retry a refused port (%s) over IPv4", async (code, message) => {
    const server = new LimitedServer(code);
    const attempt = listenTcp(server, { addr: "0.0.0.0", port: 1234, isExplicit: false });
    await expect(attempt).rejects.toThrow(DaemonStartError);
    await expect(attempt).rejects.toThrow(message);
    expect(server.listening).toBe(false);
  });

  test("rejects an explicit IPv6 address without IPv6", async () => {
    const attempt = listenTcp(new LimitedServer("EAFNOSUPPORT"), { addr: "::", port: 0, isExplicit: true });
    await expect(attempt).rejects.toThrow(
      "this machine has no IPv6. Choose another address with --http-addr.",
    );
  });
});

/** Creates a socket without a listener, as a killed daemon leaves it. */
function leaveStaleSocket(name: string): void {
  const code = `require("net").createServer().listen(${JSON.stringify(name)}, () => process.kill(process.pid, "SIGKILL"))`;
  spawnSync(process.execPath, ["-e", code]);
  expect(statSync(name).isSocket()).toBe(true);
}

describe("listenIpc", () => {
  let folder: string;

  let ipcServers: Server[];

  beforeEach(() => {
    folder = mkdtempSync(path.join(os.tmpdir(), "daybreak-ipc-"));
    ipcServers = [];
  });

  afterEach(async () => {
    for (const server of ipcServers) {
      if (server.listening) await new Promise((resolve) => server.close(resolve));
    }
    rmSync(folder, { recursive: true });
  });

  async function listen(name: string, platform = process.platform): Promise<void> {
    const server = createServer((_request, response) => response.end("here"));
    ipcServers.push(server);
    await listenIpc(server, name, platform);
  }

  describe.skipIf(process.platform === "win32")("the IPC socket", () => {
    test("is accessible to its owner only, as is a folder created for it", async () => {
      const name = path.join(folder, "new", "daybreak.sock");
      const mask = process.umask();
      await listen(name);
      expect(statSync(name).mode & 0o777).toBe(0o600);
      expect(statSync(path.dirname(name)).mode & 0o777).toBe(0o700);
      expect(process.umask()).toBe(mask);
    });

    test.each([
      [
        "cannot be created",
        (within: string) => path.join(within, "file", "run"),
        /a part of its path is not a folder/,
      ],
      ["is a loop of links", (within: string) => path.join(within, "loop"), /its links form a loop/],
      ["has too long a name", (within: string) => path.join(within, "x".repeat(300)), /bytes long|too long/],
      ["belongs to the kernel", () => "/proc/self", /no sockets|not there|may not write|refuses it/],
    ])("reports a folder that %s, with advice", async (_, where, reason) => {
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

    test.skipIf(FILE_RIGHTS.isMissing)(`reports a folder of another user${FILE_RIGHTS.note}`, async () => {
      const attempt = listen("/etc/daybreak.sock");
      await expect(attempt).rejects.toThrow(
        "The socket cannot be created in the folder /etc: this user may not write there.",
      );
    });

    test("requires a named pipe on Windows", async () => {
      await expect(listen(path.join(folder, "daybreak.sock"), "win32")).rejects.toThrow(
        /^On Windows the socket is a named pipe, \\\\\.\\pipe\\daybreak for one, and .* is a path\. Name another with --socket/,
      );
    });

    test("replaces the socket of a killed daemon", async () => {
      const name = path.join(folder, "daybreak.sock");
      leaveStaleSocket(name);
      await listen(name);
      expect(ipcServers[0]!.listening).toBe(true);
    });

    test("refuses the socket of a running daemon", async () => {
      const name = path.join(folder, "daybreak.sock");
      await listen(name);
      await expect(listen(name)).rejects.toThrow(/Another daemon listens on .*daybreak\.sock/);
      expect(existsSync(name)).toBe(true);
    });

    test.each([
      ["a symbolic link", (name: string) => symlinkSync(path.join(folder, "target"), name), /symbolic link/],
      ["a file", (name: string) => writeFileSync(name, "precious"), /not a socket/],
    ])("refuses %s at its path and keeps it", async (_kind, make, message) => {
      const name = path.join(folder, "daybreak.sock");
      make(name);
      await expect(listen(name)).rejects.toThrow(DaemonStartError);
      await expect(listen(name)).rejects.toThrow(message);
      expect(existsSync(path.join(folder, "target"))).toBe(false);
    });

    test.each([
      ["linux", 107],
      ["darwin", 103],
    ] as const)("refuses a path that is longer than %s allows", async (platform, longest) => {
      await expect(listen(path.join(folder, "x".repeat(120)), platform)).rejects.toThrow(
        new RegExp(`bytes long; the system allows ${longest}\\. .*SERVICE_SOCKET`),
      );
    });

    test("is removed when the server closes", async () => {
      const name = path.join(folder, "daybreak.sock");
      await listen(name);
      await new Promise((resolve) => ipcServers[0]!.close(resolve));
      expect(existsSync(name)).toBe(false);
    });
  });
});
