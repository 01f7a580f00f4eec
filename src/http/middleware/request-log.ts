import type { MiddlewareHandler } from "hono";
import type { Logger } from "pino";
import { type AppEnv, BodyMemory } from "../app-env.ts";

/** Message of a request's log line. */
export const REQUEST_LINE = "request";

/** Request data for the log. */
export interface RequestHead {
  readonly id: string;
  readonly method: string;
  /** Path without the query. */
  readonly path: string;
  /** Headers of W3C Trace Context. */
  readonly traceParent?: string | undefined;
  readonly traceState?: string | undefined;
}

export interface RequestEnd {
  readonly status: number;
  readonly ms: number;
  /** Path pattern of the route, such as "/api/models/{name}"; undefined if the request reached none. */
  readonly route?: string | undefined;
  /** Code of the error response. */
  readonly errorCode?: string | undefined;
  /** True if the client disconnected before the response was complete. */
  readonly isAborted: boolean;
}

/**
 * Observes a request. It must call `next`, whose asynchronous context belongs to the request, and resolves to a
 * function that is called when the response has been sent and returns additional fields of the log line.
 */
export type FollowRequest = (
  head: RequestHead,
  next: () => Promise<void>,
) => Promise<(end: RequestEnd) => Readonly<Record<string, unknown>>>;

const FOLLOW_NOTHING: FollowRequest = async (_head, next) => {
  await next();
  return () => ({});
};

/**
 * Logs a line for each request when its response has been sent, streams included. The query is left out, because some
 * clients put keys there; bodies and headers are never logged.
 */
export function requestLog(follow: FollowRequest = FOLLOW_NOTHING): MiddlewareHandler<AppEnv> {
  return async (context, next) => {
    const startedAt = performance.now();
    const { method, path } = context.req;
    const traceParent = context.req.header("traceparent");
    const traceState = context.req.header("tracestate");
    const head = { id: context.get("requestId"), method, path, traceParent, traceState };
    const onEnd = await follow(head, next);
    const { status } = context.res;
    const log = (isAborted: boolean): void => {
      const ms = Math.round(performance.now() - startedAt);
      const errorCode = context.get("errorCode");
      const figures = onEnd({ status, ms, isAborted, errorCode, route: context.get("route") });
      const line = {
        method,
        path,
        status,
        ms,
        ...(isAborted && { aborted: true }),
        ...figures,
        ...(errorCode !== undefined && { error: errorCode }),
      };
      context.get("logger").info(line, REQUEST_LINE);
    };
    const outgoing = context.env?.outgoing;
    if (!outgoing) log(false);
    // The client has disconnected before the response.
    else if (outgoing.destroyed) log(!outgoing.writableFinished);
    else outgoing.once("close", () => log(!outgoing.writableFinished));
  };
}

/** Valid ids of clients, which cannot break log lines or headers. */
const VALID_ID = /^[\w.:+/=@-]{1,128}$/;

/** Sets the request id, from x-request-id if that is valid, a logger with the id, and the limits of the body. */
export function requestId(logger: Logger, bodyLimit: number): MiddlewareHandler<AppEnv> {
  const bodyMemory = new BodyMemory(bodyLimit);
  return async (context, next) => {
    const requested = context.req.header("x-request-id");
    const id = requested !== undefined && VALID_ID.test(requested) ? requested : crypto.randomUUID();
    context.set("requestId", id);
    context.set("logger", logger.child({ request_id: id }));
    context.set("bodyLimit", bodyLimit);
    context.set("bodyMemory", bodyMemory);
    await next();
    context.header("x-request-id", id);
  };
}
