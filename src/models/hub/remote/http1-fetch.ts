import type { Dispatcher } from "undici";

/** Never asked for through a proxy: a proxy elsewhere would look for it on its own machine. */
const THIS_MACHINE = ["localhost", "127.0.0.1", "[::1]"];

/** The proxies that an environment names, by the protocol of what is fetched through them. */
export interface ProxySettings {
  readonly http: string | undefined;
  readonly https: string | undefined;
  /** Hosts that are reached without them, separated by commas. */
  readonly noProxy: string;
}

/**
 * A fetch held to HTTP/1.1, which goes through the proxies that the environment of the first call names. undici runs
 * HTTP/2 with a small flow-control window, which caps a download near window / round-trip time; a TCP connection of
 * HTTP/1.1 has no such cap.
 */
export const http1Fetch: typeof fetch = async (input, init) => {
  // Loaded by the first request: a daemon that downloads nothing starts without it.
  loading ??= loadFetch(proxySettings(process.env));
  return await (
    await loading
  )(input, init);
};

let loading: Promise<typeof fetch> | undefined;

/** What the environment says of proxies, in upper or lower case, as curl reads it, with this machine left out of them. */
export function proxySettings(env: NodeJS.ProcessEnv): ProxySettings {
  const read = (name: string): string | undefined => env[name.toLowerCase()] || env[name] || undefined;
  const all = read("ALL_PROXY");
  return {
    http: read("HTTP_PROXY") ?? all,
    https: read("HTTPS_PROXY") ?? all,
    noProxy: [read("NO_PROXY"), ...THIS_MACHINE].filter((part) => part !== undefined).join(","),
  };
}

async function loadFetch({ http, https, noProxy }: ProxySettings): Promise<typeof fetch> {
  const undici = await import("undici");
  const { Agent, EnvHttpProxyAgent } = undici;
  // As curl does: without TLS the proxy is asked for the address itself, not for a tunnel.
  const options = { allowH2: false, proxyTunnel: false };
  const direct = new Agent({ allowH2: false });
  // One for each protocol: an EnvHttpProxyAgent takes the proxy for HTTP for HTTPS too where there is no other.
  const through = (proxy: string | undefined): Dispatcher =>
    proxy === undefined
      ? direct
      : new EnvHttpProxyAgent({ ...options, httpProxy: proxy, httpsProxy: proxy, noProxy });
  const [plain, secure] = [through(http), through(https)];
  // It is the fetch of Node; the declarations of the two are not interchangeable.
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion
  const send = undici.fetch as unknown as typeof fetch;
  return async (input, init) => {
    const url = new URL(typeof input === "object" && "url" in input ? input.url : input);
    const dispatcher = url.protocol === "https:" ? secure : plain;
    return await send(url, Object.assign({ ...init }, { dispatcher }));
  };
}
