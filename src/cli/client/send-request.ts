import type { IncomingMessage } from "node:http";
import type { Readable } from "node:stream";

/**
 * node:http without an import: importing reads all exports, some of which make Node load its own fetch, which would
 * slow every command.
 */
const http = process.getBuiltinModule("node:http");

/** Timeout of connecting; a daemon across the internet accepts within seconds. */
const CONNECT_TIMEOUT_MS = 10_000;

interface OutgoingRequest {
  readonly method: string;
  /** With the query. */
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
  /** Text, or a function that opens a stream; the length of a stream must be in the headers. */
  readonly body?: string | (() => Readable) | undefined;
  readonly signal: AbortSignal;
}

/** Nothing accepts connections at the endpoint; the request was not sent. */
export class ConnectError extends Error {
  override readonly name = "ConnectError";
}

/**
 * Sends one request on a new connection and resolves with the head of the response. Aborting the signal later closes
 * the connection, and the daemon cancels its work.
 * @throws ConnectError if nothing listens at the endpoint; the signal's reason if it aborts
 */
export function sendRequest(endpoint: Endpoint, outgoing: OutgoingRequest): Promise<IncomingMessage> {
  const { method, path, headers, body, signal } = outgoing;
  const options = { method, signal, agent: false as const, headers: { ...headers, ...contentLength(body) } };
  return new Promise((resolve, reject) => {
    const request =
      endpoint.kind === "ipc"
        ? http.request({ ...options, socketPath: endpoint.socketPath, path })
        : httpModuleFor(endpoint.url).request(
            new URL(endpoint.url.pathname.replace(/\/$/, "") + path, endpoint.url),
            options,
          );
    let connected = false;
    const timeout = setTimeout(() => request.destroy(new Error("no answer")), CONNECT_TIMEOUT_MS);
    request.once("socket", (socket) => {
      socket.once(
        endpoint.kind === "http" && endpoint.url.protocol === "https:" ? "secureConnect" : "connect",
        () => {
          connected = true;
          clearTimeout(timeout);
        },
      );
    });
    request.once("response", resolve);
    request.once("error", (error) => {
      clearTimeout(timeout);
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

/** node:http or node:https, which is loaded only for https. */
function httpModuleFor({ protocol }: URL): Pick<typeof http, "request"> {
  return protocol === "https:" ? process.getBuiltinModule("node:https") : http;
}

function contentLength(body: OutgoingRequest["body"]): Record<string, string | number> {
  return typeof body !== "string" ? {} : { "content-length": Buffer.byteLength(body) };
}

export type Endpoint =
  | { readonly kind: "ipc"; readonly socketPath: string }
  | { readonly kind: "http"; readonly url: URL };

/** For people: ipc:///run/daybreak.sock or http://127.0.0.1:8080. */
export function describeEndpoint(endpoint: Endpoint): string {
  return endpoint.kind === "ipc" ? `ipc://${endpoint.socketPath}` : endpoint.url.href.replace(/\/$/, "");
}

/**
 * Loopback addresses for listeners on all interfaces, whose own address is no valid destination on every system. The
 * default 0.0.0.0 includes IPv6, and some machines have only that.
 */
const LOOPBACK_ADDRESSES = new Map([
  ["0.0.0.0", ["127.0.0.1", "::1"]],
  ["::", ["::1"]],
]);

/** Endpoints of the local daemon by its configuration, the preferred one first. */
export function localEndpoints(config: { socket: string; http: { addr: string; port: number } }): Endpoint[] {
  const endpoints: Endpoint[] = [];
  if (config.socket !== "") endpoints.push({ kind: "ipc", socketPath: config.socket });
  const { addr, port } = config.http;
  // With port 0 the system chooses one, which the configuration does not say.
  if (port === 0) return endpoints;
  for (const host of LOOPBACK_ADDRESSES.get(addr) ?? [addr]) {
    const url = new URL(`http://${host.includes(":") ? `[${host}]` : host}:${port}`);
    endpoints.push({ kind: "http", url });
  }
  return endpoints;
}

/**
 * Parses a daemon address: a URL, host:port, a host, or ipc://<path>.
 * @throws TypeError for anything else
 */
export function parseEndpoint(text: string, defaultPort: number): Endpoint {
  if (text.startsWith("ipc://")) return { kind: "ipc", socketPath: text.slice("ipc://".length) };
  const hasScheme = /^[a-z][a-z0-9+.-]*:\/\//i.test(text);
  const url = new URL(hasScheme ? text : `http://${text}`);
  if (url.protocol !== "http:" && url.protocol !== "https:")
    throw new TypeError(`unknown scheme ${url.protocol}`);
  // URL.port is empty also for the scheme's default port; only the text shows whether a port was given.
  if (!hasScheme && url.port === "" && !/:\d+$/.test(text)) url.port = String(defaultPort);
  return { kind: "http", url };
}
