import type { MiddlewareHandler } from "hono";
import { ServiceError } from "../../errors/service-error.ts";
import type { AppEnv } from "../app-env.ts";

/** When a client may retry; connections come and go within seconds. */
const RETRY_AFTER_SECS = 2;

/** Answers 503 with Retry-After on connections beyond the limit, except for /health. */
export function surplusConnection(): MiddlewareHandler<AppEnv> {
  return async (context, next) => {
    if (context.env?.surplus === true && context.req.path !== "/health") {
      throw new ServiceError(
        "overloaded",
        "All connections that the daemon keeps are in use. Close those that are not needed, or try again later.",
        { retryAfterSecs: RETRY_AFTER_SECS },
      );
    }
    await next();
  };
}
