import type { TestDaemon } from "./start-daemon.ts";

/**
 * How many requests the daemon works on, as it says itself.
 * @param key where the daemon asks for one
 */
export async function activeRequests({ url }: Pick<TestDaemon, "url">, key?: string): Promise<number> {
  const headers = key === undefined ? {} : { authorization: `Bearer ${key}` };
  const status: unknown = await (await fetch(`${url}/status`, { headers })).json();
  return Number(Object(status)["active_requests"]);
}
