import { once } from "node:events";
import { createServer, type Server } from "node:http";
import net, { type AddressInfo } from "node:net";
import { text } from "node:stream/consumers";
import { afterEach, expect, test } from "vitest";
import { answerUnreadableRequest } from "../../../src/daemon/unreadable-request.ts";

let server: Server;

afterEach(() => server.close());

/** A connection to a server that waits 50 ms for a request's head. */
async function connect(unusedMs: number): Promise<{ socket: net.Socket; timedOut: Promise<unknown> }> {
  server = createServer({ headersTimeout: 50, connectionsCheckingInterval: 10 }, (_, response) =>
    response.end("answered"),
  );
  const timedOut = once(server, "clientError");
  server.on("clientError", (error, socket) => answerUnreadableRequest(error, socket, unusedMs));
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- the address of a TCP server
  const socket = net.connect((server.address() as AddressInfo).port, "127.0.0.1");
  await once(socket, "connect");
  return { socket, timedOut };
}

test("half a request that does not go on gets 408", async () => {
  const { socket } = await connect(60_000);
  socket.write("GET / HTTP/1.1\r\nHost: ");
  expect(await text(socket)).toMatch(/^HTTP\/1\.1 408 .*"request_timeout"/s);
});

test("a connection without a request is closed without an answer", async () => {
  const { socket } = await connect(20);
  expect(await text(socket)).toBe("");
});

test("a connection opened ahead of a request still serves one that comes late", async () => {
  const { socket, timedOut } = await connect(60_000);
  await timedOut;
  socket.write("GET / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
  expect(await text(socket)).toMatch(/^HTTP\/1\.1 200 .*answered/s);
});

test("half a request on a connection opened long before gets 408", async () => {
  const { socket, timedOut } = await connect(60_000);
  await timedOut;
  socket.write("GET / HTTP/1.1\r\n");
  expect(await text(socket)).toMatch(/^HTTP\/1\.1 408 /);
});
