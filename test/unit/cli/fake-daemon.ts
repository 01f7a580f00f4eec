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
 * Answers of a fake daemon by "METHOD /path": a value becomes JSON with status 200, a function of the response
 * does as it likes.
 */
export type FakeRoutes = Record<string, unknown>;

interface FakeDaemon extends AsyncDisposable {
  readonly url: string;
  readonly socket: string;
  readonly requests: ReceivedRequest[];
  /** Resolves when the client has left the answer before its end. */
  readonly abandoned: Promise<void>;
}

/** An error answer as the daemon gives it. */
export function refuse(status: number, code: string, type: string, message = code) {
  return (response: http.ServerResponse): void => {
    response.writeHead(status, { "content-type": "application/json" });
    response.end(JSON.stringify({ error: { message, type, code } }));
  };
}

/** An answer of JSON lines. */
export function ndjson(...lines: unknown[]) {
  return (response: http.ServerResponse): void => {
    response.writeHead(200, { "content-type": "application/x-ndjson" });
    for (const line of lines) response.write(`${JSON.stringify(line)}\n`);
    response.end();
  };
}

/** A server that speaks as much of the daemon's API as a test gives it, over TCP or (`ipc`) over a socket or pipe. */
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
