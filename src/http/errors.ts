import { z } from "zod";
import type { ErrorType } from "../errors/error-codes.ts";
import { ServiceError } from "../errors/service-error.ts";
import type { AppContext } from "./app-env.ts";
import { covers, type Api, type RenderedError } from "./route.ts";
import { NDJSON_TYPE, type StreamFormat } from "./streaming/stream-response.ts";

/** Sent with 429 and 503 if the error does not say how long to wait. */
const DEFAULT_RETRY_AFTER_SECS = 1;
/** As other servers log a request whose client has left before its answer began; nobody gets it. */
const CLIENT_LEFT = 499;
const RETRY_LATER = new Set([429, 503, 529]);

/** The dialect whose error format a request gets: the one with the longest prefix; on a shared path, the one that is meant. */
function dialectOf({ path, raw }: AppContext["req"], dialects: readonly Api[]): Api {
  let best: { dialect: Api; length: number } | undefined;
  for (const dialect of dialects) {
    const { shared } = dialect;
    for (const prefix of [...dialect.prefixes, ...(shared?.isMeant(raw.headers) ? shared.prefixes : [])]) {
      if (covers(prefix, path) && prefix.length > (best?.length ?? -1)) {
        best = { dialect, length: prefix.length };
      }
    }
  }
  if (!best) throw new Error(`no dialect covers ${path}: one of them must have the prefix "/"`);
  return best.dialect;
}

/**
 * The only place where exceptions become responses. Anything but a ServiceError is an internal_error that does not reveal
 * its cause to the client; the log does.
 */
export function errorResponse(context: AppContext, thrown: unknown, dialects: readonly Api[]): Response {
  if (context.req.raw.signal.aborted && !(thrown instanceof ServiceError))
    return new Response(null, { status: CLIENT_LEFT });
  const error = ServiceError.from(thrown);
  context.set("errorCode", error.code);
  logError(context, error);
  const rendered = dialectOf(context.req, dialects).renderError(error, context.get("requestId"));
  const headers = new Headers(rendered.headers);
  headers.set("content-type", "application/json");
  if (RETRY_LATER.has(rendered.status)) {
    headers.set("retry-after", String(Math.ceil(error.retryAfterSecs ?? DEFAULT_RETRY_AFTER_SECS)));
  }
  return new Response(JSON.stringify(rendered.body), { status: rendered.status, headers });
}

function logError(context: AppContext, error: ServiceError): void {
  if (error.status < 500 || context.req.raw.signal.aborted) return;
  const logger = context.get("logger");
  // 503 is a normal way of saying "later" and does not need a stack.
  if (error.status === 503) logger.warn({ code: error.code }, error.message);
  else logger.error({ err: error }, error.message);
}

const ERROR_TYPES = [
  "invalid_request",
  "not_found",
  "model_error",
  "conflict",
  "internal_error",
  "overloaded",
] as const satisfies readonly ErrorType[];

/** The error body of the interface specification, part "Errors". */
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

/** Newline-delimited JSON with an error object as the last line of a stream that fails. */
export const nativeNdjson: StreamFormat = {
  contentType: NDJSON_TYPE,
  errorFrame: (error) => ndjsonLine(nativeErrorBody(error)),
};

export function ndjsonLine(value: object): string {
  return `${JSON.stringify(value)}\n`;
}

/** The daemon's state, which /health reports. */
export interface Life {
  state: "starting" | "ready" | "draining";
}

/** A small model loads in about a second, so the daemon is usually ready after this. */
const STARTING_RETRY_SECS = 2;
/** A restart by a supervisor takes a few seconds. */
const DRAINING_RETRY_SECS = 5;

/** Throws the 503 for new requests while the daemon starts or drains. */
export function assertServing({ life }: { readonly life: Readonly<Life> }): void {
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
