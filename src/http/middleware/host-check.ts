import type { MiddlewareHandler } from "hono";
import { ServiceError } from "../../errors/service-error.ts";
import type { AppEnv } from "../app-env.ts";
import { isLoopbackAddress } from "../client-address.ts";

/** The host of a Host header without port and trailing dot, in lowercase. */
function hostName(header: string): string {
  const host = header.trim().toLowerCase();
  const match = /^(\[[0-9a-f:.]+\]|[^:]+)(?::\d{1,5})?$/.exec(host);
  return match?.[1]?.replace(/\.$/, "") ?? "";
}

/**
 * Refuses foreign Host headers while listening on loopback: a page whose name resolves to 127.0.0.1 (DNS rebinding) would
 * otherwise have the daemon's origin. Pages cannot reach the IPC socket.
 */
export function hostCheck(boundTo: string, allowedHosts: readonly string[]): MiddlewareHandler<AppEnv> {
  const active = isLoopbackAddress(boundTo);
  const allowed = new Set(allowedHosts.map(hostName));
  return async (context, next) => {
    if (active && context.env?.ipc !== true) {
      const name = hostName(context.req.header("host") ?? new URL(context.req.url).host);
      if (!isLoopbackAddress(name) && !name.endsWith(".localhost") && !allowed.has(name)) {
        throw new ServiceError(
          "forbidden_host",
          "This Host header is not allowed. Add the name to http.allowed_hosts if it is yours.",
        );
      }
    }
    await next();
  };
}
