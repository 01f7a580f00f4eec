import type { MiddlewareHandler } from "hono";
import type { AppEnv } from "../app-env.ts";

/** The message of a request's line in the log. */
export const REQUEST_LINE = "request";

/** A request as its line in the log tells it. */
export interface RequestHead {
  readonly id: string;
  readonly method: string;
  /** Without the query. */
  readonly path: string;
}

export interface RequestEnd {
  readonly status: number;
  readonly ms: number;
  /** The client left before its answer was complete. */
  readonly isAborted: boolean;
}

/**
 * Follows each request, for somebody who knows more than this kit of what requests do: must call `next`, in which all that
 * happens belongs to the request. Resolves to a function that is called when the answer has been sent.
 */
export type FollowRequest = (
  head: RequestHead,
  next: () => Promise<void>,
) => Promise<(end: RequestEnd) => void>;

const FOLLOW_NOTHING: FollowRequest = async (_head, next) => {
  await next();
  return () => undefined;
};

/**
 * Logs one line per request when its response has been sent, streams included. The query is left out, because some clients
 * put keys there; bodies and headers are never logged.
 */
export function requestLog(follow: FollowRequest = FOLLOW_NOTHING): MiddlewareHandler<AppEnv> {
  return async (context, next) => {
    const startedAt = performance.now();
    const { method, path } = context.req;
    const onEnd = await follow({ id: context.get("requestId"), method, path }, next);
    const { status } = context.res;
    const log = (isAborted: boolean): void => {
      const ms = Math.round(performance.now() - startedAt);
      const line = { method, path, status, ms, ...(isAborted && { aborted: true }) };
      context.get("logger").info(line, REQUEST_LINE);
      onEnd({ status, ms, isAborted });
    };
    const outgoing = context.env?.outgoing;
    if (outgoing) outgoing.once("close", () => log(!outgoing.writableFinished));
    else log(false);
  };
}
