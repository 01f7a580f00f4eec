import type { Dispatcher } from "undici";

/** Hosts never requested through a proxy, which would resolve them to its own machine. */
const THIS_MACHINE = ["localhost", "127.0.0.1", "[::1]"];

/** Proxies from the environment, by the protocol of the request. */
interface ProxySettings {
  readonly http: string | undefined;
  readonly https: string | undefined;
  /** Hosts that are reached without a proxy, separated by commas. */
  readonly noProxy: string;
}

/**
 * A fetch restricted to HTTP/1.1 that uses the proxies in the environment at the first call. undici runs HTTP/2 with a
 * small flow-control window, which limits downloads to about window / round-trip time; HTTP/1.1 has no such limit.
 */
export const http1Fetch: typeof fetch = async (input, init) => {
  // undici is imported by the first request, so that a daemon that downloads nothing does not load it.
  loading ??= loadFetch(proxySettings(process.env));
  return await (
    await loading
  )(input, init);
};

let loading: Promise<typeof fetch> | undefined;

/** Reads proxies from the environment as curl does, in upper or lower case; never used for this machine. */
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
  // As in curl, requests without TLS are sent to the proxy itself instead of through a tunnel.
  const options = { allowH2: false, proxyTunnel: false };
  const direct = new Agent({ allowH2: false });
  // One agent for each protocol: an EnvHttpProxyAgent without an HTTPS proxy uses its HTTP proxy for HTTPS as well.
  const through = (proxy: string | undefined): Dispatcher =>
    proxy === undefined
      ? direct
      : new EnvHttpProxyAgent({ ...options, httpProxy: proxy, httpsProxy: proxy, noProxy });
  const [plain, secure] = [through(http), through(https)];
  // undici's fetch is compatible with Node's, but their type declarations are not interchangeable.
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion
  const send = undici.fetch as unknown as typeof fetch;
  return async (input, init) => {
    const url = new URL(typeof input === "object" && "url" in input ? input.url : input);
    const dispatcher = url.protocol === "https:" ? secure : plain;
    return await send(url, Object.assign({ ...init }, { dispatcher }));
  };
}
