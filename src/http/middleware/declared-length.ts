import type { MiddlewareHandler } from "hono";
import type { AppEnv } from "../app-env.ts";
import { payloadTooLarge } from "../input/read-json.ts";

/** Refuses a body that says itself that it is too large, on routes that read no body too. */
export function declaredLength(limit: number): MiddlewareHandler<AppEnv> {
  return async (context, next) => {
    if (Number(context.req.header("content-length") ?? 0) > limit) throw payloadTooLarge(limit);
    await next();
  };
}
