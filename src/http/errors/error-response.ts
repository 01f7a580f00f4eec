import { ServiceError } from "../../errors/service-error.ts";
import type { AppContext } from "../app-env.ts";
import { covers, type Dialect } from "../dialect.ts";

/** Sent with 429 and 503 if the error does not say how long to wait. */
const DEFAULT_RETRY_AFTER_SECS = 1;
/** As other servers log a request whose client has left before its answer began; nobody gets it. */
const CLIENT_LEFT = 499;
const RETRY_LATER = new Set([429, 503, 529]);

/** The dialect whose error format a request gets: the one with the longest prefix; on a shared path, the one that is meant. */
function dialectOf({ path, raw }: AppContext["req"], dialects: readonly Dialect[]): Dialect {
  let best: { dialect: Dialect; length: number } | undefined;
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
export function errorResponse(context: AppContext, thrown: unknown, dialects: readonly Dialect[]): Response {
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
