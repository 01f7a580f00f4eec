import { once } from "node:events";
import http from "node:http";
import { mkdtempSync, rmSync } from "node:fs";
import os from "node:os";
import path from "node:path";
import { text } from "node:stream/consumers";
import { ipcAddress } from "../../support/ipc-address.ts";

interface ReceivedRequest {
  readonly method: string;
  readonly path: string;
  readonly headers: http.IncomingHttpHeaders;
  readonly body: unknown;
}

/**
 * Responses of a fake daemon by "METHOD /path": a value is sent as JSON with status 200; a function writes the
 * response.
 */
export type FakeRoutes = Record<string, unknown>;

interface FakeDaemon extends AsyncDisposable {
  readonly url: string;
  readonly socket: string;
  readonly requests: ReceivedRequest[];
  /** Resolves when the client has closed a connection before the end of the response. */
  readonly abandoned: Promise<void>;
}

/** Returns an error response of the daemon. */
export function refuse(status: number, code: string, type: string, message = code) {
  return (response: http.ServerResponse): void => {
    response.writeHead(status, { "content-type": "application/json" });
    response.end(JSON.stringify({ error: { message, type, code } }));
  };
}

/** Returns a response of JSON lines. */
export function ndjson(...lines: unknown[]) {
  return (response: http.ServerResponse): void => {
    response.writeHead(200, { "content-type": "application/x-ndjson" });
    for (const line of lines) response.write(`${JSON.stringify(line)}\n`);
    response.end();
  };
}

/** Starts a server with the given routes, over TCP or (`ipc`) a socket or pipe. */
export async function startFakeDaemon(routes: FakeRoutes, { ipc = false } = {}): Promise<FakeDaemon> {
  const folder = mkdtempSync(path.join(os.tmpdir(), "daybreak-fake-"));
  const socket = ipcAddress(folder);
  const requests: ReceivedRequest[] = [];
  const abandoned = Promise.withResolvers<void>();
  const answer = async (request: http.IncomingMessage, response: http.ServerResponse): Promise<void> => {
    const raw = await text(request);
    const { method = "", url = "", headers } = request;
    const body: unknown = raw === "" ? undefined : JSON.parse(raw);
    requests.push({ method, path: url, headers, body });
    response.once("close", () => {
      if (!response.writableFinished) abandoned.resolve();
    });
    const route = routes[`${method} ${url}`];
    if (typeof route === "function") route(response);
    else if (route === undefined) refuse(404, "route_not_found", "not_found")(response);
    else response.end(JSON.stringify(route));
  };
  const server = http.createServer((request, response) => void answer(request, response));
  server.listen(ipc ? socket : { port: 0, host: "127.0.0.1" });
  await once(server, "listening");
  const address = server.address();
  const port = typeof address === "object" && address ? address.port : 0;
  return {
    url: `http://127.0.0.1:${port}`,
    socket,
    requests,
    abandoned: abandoned.promise,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
      rmSync(folder, { recursive: true, force: true });
    },
  };
}
