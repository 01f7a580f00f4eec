import type { MiddlewareHandler } from "hono";
import type { Logger } from "pino";
import type { AppEnv } from "../app-env.ts";
import { HeldBodies } from "../input/held-bodies.ts";

/** Ids that a client may choose: nothing that could break a log line or a header. */
const SANE_ID = /^[\w.:+/=@-]{1,128}$/;

/** Gives each request an id, from x-request-id if that is valid, and a logger with that id. */
export function requestId(logger: Logger, bodyLimit: number): MiddlewareHandler<AppEnv> {
  const heldBodies = new HeldBodies(bodyLimit);
  return async (context, next) => {
    const given = context.req.header("x-request-id");
    const id = given !== undefined && SANE_ID.test(given) ? given : crypto.randomUUID();
    context.set("requestId", id);
    context.set("logger", logger.child({ request_id: id }));
    context.set("bodyLimit", bodyLimit);
    context.set("heldBodies", heldBodies);
    await next();
    context.header("x-request-id", id);
  };
}
