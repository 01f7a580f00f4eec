/* oxlint-disable eslint/no-underscore-dangle -- names of Node's stream methods */
import { once } from "node:events";
import { createServer, type IncomingMessage, type Server } from "node:http";
import net, { type AddressInfo } from "node:net";
import { text } from "node:stream/consumers";
import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest";
import { answerUnreadableRequest, JoinedResponse } from "../../../src/daemon/http-listener.ts";

describe("JoinedResponse", () => {
  /** Resolved by a test to let the server continue. */
  let goOn = Promise.withResolvers<void>();

  /** Number of the server's writes to its socket. */
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

  /** Sends a request and resolves at the first bytes of the response. */
  async function ask(path: string): Promise<{ socket: net.Socket; first: string }> {
    goOn = Promise.withResolvers<void>();
    const address = server.address();
    if (address === null || typeof address === "string") throw new Error("the server has no port");
    const socket = net.connect(address.port);
    socket.write(`GET ${path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n`);
    const [chunk]: unknown[] = await once(socket, "data");
    return { socket, first: String(chunk) };
  }

  test("sends the headers before a frame that takes long", async () => {
    const { socket, first } = await ask("/slow");
    expect(first).toMatch(/^HTTP\/1\.1 200 OK/);
    expect(first).not.toContain("frame");
    goOn.resolve();
    await once(socket.resume(), "close");
  });

  test("sends the headers together with a frame that is available", async () => {
    const { socket, first } = await ask("/fast");
    expect(first).toMatch(/^HTTP\/1\.1 200 OK[^]*frame/);
    expect(writes).toBe(1);
    goOn.resolve();
    await once(socket.resume(), "close");
  });
});

describe("answerUnreadableRequest", () => {
  let badRequestServer: Server;

  afterEach(() => badRequestServer.close());

  /** Connects to a server that waits 50 ms for the headers of a request. */
  async function connect(unusedMs: number): Promise<{ socket: net.Socket; timedOut: Promise<unknown> }> {
    badRequestServer = createServer({ headersTimeout: 50, connectionsCheckingInterval: 10 }, (_, response) =>
      response.end("answered"),
    );
    const timedOut = once(badRequestServer, "clientError");
    badRequestServer.on("clientError", (error, socket) => answerUnreadableRequest(error, socket, unusedMs));
    badRequestServer.listen(0, "127.0.0.1");
    await once(badRequestServer, "listening");
    // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- the address of a TCP server
    const socket = net.connect((badRequestServer.address() as AddressInfo).port, "127.0.0.1");
    await once(socket, "connect");
    return { socket, timedOut };
  }

  test("answers an incomplete request with 408", async () => {
    const { socket } = await connect(60_000);
    socket.write("GET / HTTP/1.1\r\nHost: ");
    expect(await text(socket)).toMatch(/^HTTP\/1\.1 408 .*"request_timeout"/s);
  });

  test("closes a connection without a request without a response", async () => {
    const { socket } = await connect(20);
    expect(await text(socket)).toBe("");
  });

  test("serves a late request on an idle connection", async () => {
    const { socket, timedOut } = await connect(60_000);
    await timedOut;
    socket.write("GET / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
    expect(await text(socket)).toMatch(/^HTTP\/1\.1 200 .*answered/s);
  });

  test("answers an incomplete request on an idle connection with 408", async () => {
    const { socket, timedOut } = await connect(60_000);
    await timedOut;
    socket.write("GET / HTTP/1.1\r\n");
    expect(await text(socket)).toMatch(/^HTTP\/1\.1 408 /);
  });
});
