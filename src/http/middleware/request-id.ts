import type { MiddlewareHandler } from "hono";
import type { Logger } from "pino";
import type { AppEnv } from "../app-env.ts";
import { HeldBodies } from "../input/held-bodies.ts";

/** What a client may choose as its id: nothing that could break a log line or a header. */
const SANE_ID = /^[\w.:+/=@-]{1,128}$/;

/** Gives each request an id, taken from x-request-id when that is sane, and a logger that carries it. */
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
