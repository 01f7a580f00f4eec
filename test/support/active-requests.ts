import type { TestDaemon } from "./start-daemon.ts";

/** How many requests the daemon works on, as it says itself. */
export async function activeRequests({ url }: Pick<TestDaemon, "url">): Promise<number> {
  const status: unknown = await (await fetch(`${url}/status`)).json();
  return Number(Object(status)["active_requests"]);
}
