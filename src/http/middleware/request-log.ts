import type { MiddlewareHandler } from "hono";
import type { Logger } from "pino";
import { type AppEnv, BodyMemory } from "../app-env.ts";

/** The message of a request's line in the log. */
export const REQUEST_LINE = "request";

/** A request as its line in the log tells it. */
export interface RequestHead {
  readonly id: string;
  readonly method: string;
  /** Without the query. */
  readonly path: string;
  /** The headers of W3C Trace Context: the trace that it belongs to. */
  readonly traceParent?: string | undefined;
  readonly traceState?: string | undefined;
}

export interface RequestEnd {
  readonly status: number;
  readonly ms: number;
  /** Pattern of the path that answered, such as "/api/models/{name}"; none did when it was refused before, or unknown. */
  readonly route?: string | undefined;
  /** Code of the error that was the answer. */
  readonly errorCode?: string | undefined;
  /** The client left before its answer was complete. */
  readonly isAborted: boolean;
}

/**
 * Follows each request, for somebody who knows more than this kit of what requests do: must call `next`, in which all that
 * happens belongs to the request. Resolves to a function that is called when the answer has been sent; what it returns is
 * part of the line in the log.
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
 * Logs one line per request when its response has been sent, streams included. The query is left out, because some clients
 * put keys there; bodies and headers are never logged.
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
    // The client has left before there was an answer.
    else if (outgoing.destroyed) log(!outgoing.writableFinished);
    else outgoing.once("close", () => log(!outgoing.writableFinished));
  };
}

/** Ids that a client may choose: nothing that could break a log line or a header. */
const SANE_ID = /^[\w.:+/=@-]{1,128}$/;

/** Gives each request an id, from x-request-id if that is valid, and a logger with that id. */
export function requestId(logger: Logger, bodyLimit: number): MiddlewareHandler<AppEnv> {
  const heldBodies = new BodyMemory(bodyLimit);
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
