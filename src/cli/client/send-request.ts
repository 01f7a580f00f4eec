import type { IncomingMessage } from "node:http";
import type { Readable } from "node:stream";

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

/** A place where a daemon may answer. */
export type Endpoint =
  | { readonly kind: "ipc"; readonly socketPath: string }
  | { readonly kind: "http"; readonly url: URL };

/** For people: ipc:///run/daybreak.sock or http://127.0.0.1:8080. */
export function describeEndpoint(endpoint: Endpoint): string {
  return endpoint.kind === "ipc" ? `ipc://${endpoint.socketPath}` : endpoint.url.href.replace(/\/$/, "");
}

/**
 * Where to reach listeners on every interface, whose address is not a destination everywhere. The default, 0.0.0.0, stands
 * for IPv6 as well, and some machines have nothing else.
 */
const ANY_ADDRESS = new Map([
  ["0.0.0.0", ["127.0.0.1", "::1"]],
  ["::", ["::1"]],
]);

/** The local endpoints that a configuration describes, best first. */
export function localEndpoints(config: { socket: string; http: { addr: string; port: number } }): Endpoint[] {
  const endpoints: Endpoint[] = [];
  if (config.socket !== "") endpoints.push({ kind: "ipc", socketPath: config.socket });
  const { addr, port } = config.http;
  // Port 0 lets the system choose: the configuration cannot tell which.
  if (port === 0) return endpoints;
  for (const host of ANY_ADDRESS.get(addr) ?? [addr]) {
    const url = new URL(`http://${host.includes(":") ? `[${host}]` : host}:${port}`);
    endpoints.push({ kind: "http", url });
  }
  return endpoints;
}

/**
 * Reads what a user gave as the daemon's address: a URL, host:port, a host, or ipc://<path>.
 * Throws a TypeError when it is something else.
 */
export function parseEndpoint(text: string, defaultPort: number): Endpoint {
  if (text.startsWith("ipc://")) return { kind: "ipc", socketPath: text.slice("ipc://".length) };
  const hasScheme = /^[a-z][a-z0-9+.-]*:\/\//i.test(text);
  const url = new URL(hasScheme ? text : `http://${text}`);
  if (url.protocol !== "http:" && url.protocol !== "https:")
    throw new TypeError(`unknown scheme ${url.protocol}`);
  // A URL's own port is empty both when absent and when it is the scheme's default: only the text tells.
  if (!hasScheme && url.port === "" && !/:\d+$/.test(text)) url.port = String(defaultPort);
  return { kind: "http", url };
}
