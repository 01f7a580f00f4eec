/* oxlint-disable eslint/no-underscore-dangle -- Node names the methods by which a stream writes so */
import { once } from "node:events";
import { createServer, type IncomingMessage } from "node:http";
import net from "node:net";
import { afterAll, beforeAll, expect, test } from "vitest";
import { JoinedResponse } from "../../../src/daemon/joined-response.ts";

/** What a test lets the server do next. */
let goOn = Promise.withResolvers<void>();
/** How often the server handed something to its socket before its answer ended. */
let writes = 0;

const server = createServer({ ServerResponse: JoinedResponse }, (request, response) => {
  void answer(request, response);
});

async function answer({ socket, url }: IncomingMessage, response: JoinedResponse): Promise<void> {
  writes = 0;
  const writev = socket._writev?.bind(socket);
  const write = socket._write.bind(socket);
  socket._writev = (chunks, callback) => {
    writes += 1;
    writev?.(chunks, callback);
  };
  socket._write = (chunk, encoding, callback) => {
    writes += 1;
    write(chunk, encoding, callback);
  };
  response.writeHead(200, { "transfer-encoding": "chunked" });
  response.flushHeaders();
  if (url === "/slow") await goOn.promise;
  response.write("frame");
  await goOn.promise;
  response.end();
}

beforeAll(async () => {
  server.listen(0);
  await once(server, "listening");
});

afterAll(() => server.close());

/** Asks, and resolves with the connection when the answer's first bytes are there. */
async function ask(path: string): Promise<{ socket: net.Socket; first: string }> {
  goOn = Promise.withResolvers<void>();
  const address = server.address();
  if (address === null || typeof address === "string") throw new Error("the server has no port");
  const socket = net.connect(address.port);
  socket.write(`GET ${path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n`);
  const [chunk]: unknown[] = await once(socket, "data");
  return { socket, first: String(chunk) };
}

test("a head goes out before a frame that takes long", async () => {
  const { socket, first } = await ask("/slow");
  expect(first).toMatch(/^HTTP\/1\.1 200 OK/);
  expect(first).not.toContain("frame");
  goOn.resolve();
  await once(socket.resume(), "close");
});

test("a head and a frame that is there go out together", async () => {
  const { socket, first } = await ask("/fast");
  expect(first).toMatch(/^HTTP\/1\.1 200 OK[^]*frame/);
  expect(writes).toBe(1);
  goOn.resolve();
  await once(socket.resume(), "close");
});
