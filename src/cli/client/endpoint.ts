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
