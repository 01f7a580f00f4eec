import type { MiddlewareHandler } from "hono";
import type { AppEnv } from "../app-env.ts";

/**
 * Logs one line per request when its response has been sent, streams included. The query is left out, because some clients
 * put keys there; bodies and headers are never logged.
 */
export function requestLog(): MiddlewareHandler<AppEnv> {
  return async (context, next) => {
    const startedAt = performance.now();
    await next();
    const { method, path } = context.req;
    const { status } = context.res;
    const log = (aborted: boolean): void => {
      const ms = Math.round(performance.now() - startedAt);
      context.get("logger").info({ method, path, status, ms, ...(aborted && { aborted }) }, "request");
    };
    const outgoing = context.env?.outgoing;
    if (outgoing) outgoing.once("close", () => log(!outgoing.writableFinished));
    else log(false);
  };
}
