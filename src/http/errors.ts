import { z } from "zod";
import { ERROR_TYPES } from "../errors/error-codes.ts";
import { ServiceError } from "../errors/service-error.ts";
import type { AppContext } from "./app-env.ts";
import { covers, type Api, type RenderedError } from "./route.ts";
import { NDJSON_TYPE, type StreamFormat } from "./streaming/stream-response.ts";

/** Sent with 429 and 503 if the error does not say how long to wait. */
const DEFAULT_RETRY_AFTER_SECS = 1;
/** nginx's status for a client that closed the connection before the response; only the log shows it. */
const CLIENT_CLOSED_REQUEST = 499;
const RETRYABLE_STATUSES = new Set([429, 503, 529]);

/**
 * API whose error format a request gets: the one with the longest prefix; on a shared path, the one that the headers
 * select.
 */
function apiFor({ path, raw }: AppContext["req"], apis: readonly Api[]): Api {
  let best: { api: Api; length: number } | undefined;
  for (const api of apis) {
    const { shared } = api;
    for (const prefix of [...api.prefixes, ...(shared?.matches(raw.headers) ? shared.prefixes : [])]) {
      if (covers(prefix, path) && prefix.length > (best?.length ?? -1)) {
        best = { api, length: prefix.length };
      }
    }
  }
  if (!best) throw new Error(`no API covers ${path}: one of them must have the prefix "/"`);
  return best.api;
}

/**
 * Turns an exception into a response; no other code does. Anything but a ServiceError becomes an internal_error, whose
 * cause is only in the log.
 */
export function errorResponse(context: AppContext, thrown: unknown, apis: readonly Api[]): Response {
  if (context.req.raw.signal.aborted && !(thrown instanceof ServiceError))
    return new Response(null, { status: CLIENT_CLOSED_REQUEST });
  const error = ServiceError.from(thrown);
  context.set("errorCode", error.code);
  logError(context, error);
  const rendered = apiFor(context.req, apis).renderError(error, context.get("requestId"));
  const headers = new Headers(rendered.headers);
  headers.set("content-type", "application/json");
  if (RETRYABLE_STATUSES.has(rendered.status)) {
    headers.set("retry-after", String(Math.ceil(error.retryAfterSecs ?? DEFAULT_RETRY_AFTER_SECS)));
  }
  return new Response(JSON.stringify(rendered.body), { status: rendered.status, headers });
}

function logError(context: AppContext, error: ServiceError): void {
  if (error.status < 500 || context.req.raw.signal.aborted) return;
  const logger = context.get("logger");
  // 503 is normal under load and needs no stack.
  if (error.status === 503) logger.warn({ code: error.code }, error.message);
  else logger.error({ err: error }, error.message);
}

/** Error body of the native API. */
export const nativeErrorSchema = z
  .object({
    error: z.object({
      message: z.string().describe("For people; may change."),
      type: z.enum(ERROR_TYPES),
      code: z.string().describe("For programs; see docs/errors.md."),
    }),
  })
  .meta({ id: "Error" });

export function nativeErrorBody(error: ServiceError): z.infer<typeof nativeErrorSchema> {
  return { error: { message: error.message, type: error.type, code: error.code } };
}

export function renderNativeError(error: ServiceError): RenderedError {
  return { status: error.status, body: nativeErrorBody(error) };
}

/** Stream of newline-delimited JSON; the last line of a failed one is an error object. */
export const nativeNdjson: StreamFormat = {
  contentType: NDJSON_TYPE,
  errorFrame: (error) => ndjsonLine(nativeErrorBody(error)),
};

export function ndjsonLine(value: object): string {
  return `${JSON.stringify(value)}\n`;
}

/** Shared state of the daemon, which /health reports. */
export interface DaemonState {
  state: "starting" | "ready" | "draining";
}

/** Retry-After while the daemon starts; a small model loads in about a second. */
const STARTING_RETRY_SECS = 2;
/** Retry-After while the daemon drains; a restart takes a few seconds. */
const DRAINING_RETRY_SECS = 5;

/** @throws ServiceError with status 503 while the daemon starts or drains */
export function assertServing({ life }: { readonly life: Readonly<DaemonState> }): void {
  if (life.state === "starting") {
    throw new ServiceError("starting", "The daemon is starting: its models are still being loaded.", {
      retryAfterSecs: STARTING_RETRY_SECS,
    });
  }
  if (life.state === "draining") {
    throw new ServiceError("shutting_down", "The daemon is shutting down and takes no new requests.", {
      retryAfterSecs: DRAINING_RETRY_SECS,
    });
  }
}
