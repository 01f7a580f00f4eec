import http from "node:http";

/** Never asked for through a proxy: a proxy elsewhere would look for it on its own machine. */
const THIS_MACHINE = ["localhost", "127.0.0.1", "::1"];

/** The proxy settings of an environment, in upper or lower case. */
interface ProxySettings {
  readonly HTTP_PROXY?: string;
  readonly HTTPS_PROXY?: string;
  readonly NO_PROXY: string;
}

/**
 * What the environment says of proxies, as curl reads it, with this machine left out of them. Undefined when it
 * names none.
 */
export function proxySettings(env: NodeJS.ProcessEnv): ProxySettings | undefined {
  const read = (name: string): string | undefined => env[name.toLowerCase()] || env[name] || undefined;
  const all = read("ALL_PROXY");
  const [plain, secure] = [read("HTTP_PROXY") ?? all, read("HTTPS_PROXY") ?? all];
  if (plain === undefined && secure === undefined) return undefined;
  const exceptions = [read("NO_PROXY"), ...THIS_MACHINE].filter((part) => part !== undefined);
  return {
    ...(plain !== undefined && { HTTP_PROXY: plain }),
    ...(secure !== undefined && { HTTPS_PROXY: secure }),
    NO_PROXY: exceptions.join(","),
  };
}

/**
 * Makes the built-in fetch use the proxy that the environment names; Node itself would do so only when
 * NODE_USE_ENV_PROXY is set. Early releases of Node 24 cannot be told afterwards and need that variable.
 */
export function useProxyOf(env: NodeJS.ProcessEnv): void {
  const settings = proxySettings(env);
  if (settings && "setGlobalProxyFromEnv" in http) http.setGlobalProxyFromEnv({ ...settings });
}
