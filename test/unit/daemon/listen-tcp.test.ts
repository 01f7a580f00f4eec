import { once } from "node:events";
import { Server } from "node:http";
import { afterEach, expect, test } from "vitest";
import { DaemonStartError } from "../../../src/daemon/daemon-start-error.ts";
import { listenTcp } from "../../../src/daemon/listen-tcp.ts";

const servers: Server[] = [];
afterEach(async () => {
  for (const server of servers.splice(0)) {
    if (server.listening) await once(server.close(), "close");
  }
});

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
  await expect(attempt).rejects.toThrow("this machine has no IPv6. Choose another address with --http-addr.");
});
