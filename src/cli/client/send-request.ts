import type { IncomingMessage } from "node:http";
import type { Readable } from "node:stream";
import type { Endpoint } from "./endpoint.ts";

/**
 * Importing node:http would read all its exports, some of which make Node load its own fetch, which would slow every
 * command.
 */
const http = process.getBuiltinModule("node:http");

/** A local daemon accepts within milliseconds, one across the internet within seconds. */
const CONNECT_TIMEOUT_MS = 10_000;

interface OutgoingRequest {
  readonly method: string;
  /** With its query. */
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
  /** A stream is made once the request is sent; its length is among the headers. */
  readonly body?: string | (() => Readable) | undefined;
  readonly signal: AbortSignal;
}

/** Nothing accepts connections at the endpoint; the request has not been sent. */
export class ConnectError extends Error {
  override readonly name = "ConnectError";
}

/**
 * Sends one request on a new connection and resolves with the answer's head. Rejects with a
 * {@link ConnectError} when nothing listens at the endpoint, with the signal's reason when aborted; aborting
 * later ends the connection, by which the daemon cancels its work.
 */
export function sendRequest(endpoint: Endpoint, outgoing: OutgoingRequest): Promise<IncomingMessage> {
  const { method, path, headers, body, signal } = outgoing;
  const options = { method, signal, agent: false as const, headers: { ...headers, ...lengthOf(body) } };
  return new Promise((resolve, reject) => {
    const request =
      endpoint.kind === "ipc"
        ? http.request({ ...options, socketPath: endpoint.socketPath, path })
        : protocolOf(endpoint.url).request(
            new URL(endpoint.url.pathname.replace(/\/$/, "") + path, endpoint.url),
            options,
          );
    let connected = false;
    const patience = setTimeout(() => request.destroy(new Error("no answer")), CONNECT_TIMEOUT_MS);
    request.once("socket", (socket) => {
      socket.once(
        endpoint.kind === "http" && endpoint.url.protocol === "https:" ? "secureConnect" : "connect",
        () => {
          connected = true;
          clearTimeout(patience);
        },
      );
    });
    request.once("response", resolve);
    request.once("error", (error) => {
      clearTimeout(patience);
      if (signal.aborted) reject(signal.reason);
      else reject(connected ? error : new ConnectError(error.message, { cause: error }));
    });
    if (typeof body === "function") {
      const stream = body();
      stream.once("error", (error) => request.destroy(error));
      stream.pipe(request);
    } else request.end(body);
  });
}

/** TLS is loaded where it is needed. */
function protocolOf({ protocol }: URL): Pick<typeof http, "request"> {
  return protocol === "https:" ? process.getBuiltinModule("node:https") : http;
}

function lengthOf(body: OutgoingRequest["body"]): Record<string, string | number> {
  return typeof body !== "string" ? {} : { "content-length": Buffer.byteLength(body) };
}
