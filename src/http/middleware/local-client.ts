import type { MiddlewareHandler } from "hono";
import type { AppEnv } from "../app-env.ts";
import { isLoopbackAddress } from "../client-address.ts";

/** What proxies add: their clients may be anywhere. */
const FORWARDED = ["forwarded", "x-forwarded-for", "x-real-ip", "via"];

/**
 * Records whether a request comes from a program on this machine: over IPC or from a loopback address, but neither through a
 * proxy nor from a foreign page.
 */
export function localClient(): MiddlewareHandler<AppEnv> {
  return async (context, next) => {
    const address = context.env?.incoming?.socket.remoteAddress;
    const isLocal =
      address !== undefined &&
      isLoopbackAddress(address) &&
      !context.get("isForeignPage") &&
      FORWARDED.every((name) => context.req.header(name) === undefined);
    context.set("isLocalClient", context.env?.ipc === true || isLocal);
    await next();
  };
}
