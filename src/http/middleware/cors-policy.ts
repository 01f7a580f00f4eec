import type { MiddlewareHandler } from "hono";
import { cors } from "hono/cors";
import { ServiceError } from "../../errors/service-error.ts";
import { WARNING_HEADER } from "./answer-warnings.ts";
import type { AppEnv } from "../app-env.ts";

/** Headers that scripts of other origins may read. */
const EXPOSED_HEADERS = ["x-request-id", "request-id", "retry-after", "x-should-retry", WARNING_HEADER];
const METHODS = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"];
/** Lifetime of a preflight's result; Chromium limits it to two hours. */
const PREFLIGHT_MAX_AGE_SECS = 600;

/** Values of Sec-Fetch-Site for pages of other origins; another port is same-site. */
const FOREIGN_SITES = new Set(["cross-site", "same-site"]);

/**
 * CORS: any origin, method and header, unless the configuration lists origins. Allowed origins may also be public sites
 * that access a private network, for which browsers send a separate header.
 */
export function corsHeaders(origins: readonly string[]): MiddlewareHandler<AppEnv> {
  const standard = cors({
    origin: origins.includes("*") ? "*" : origins.map(normalizeOrigin),
    allowMethods: METHODS,
    exposeHeaders: EXPOSED_HEADERS,
    maxAge: PREFLIGHT_MAX_AGE_SECS,
  });
  return async (context, next) => {
    const answer = await standard(context, next);
    const isAllowed = answer?.headers.has("access-control-allow-origin") === true;
    if (isAllowed && context.req.header("access-control-request-private-network") === "true")
      answer.headers.set("access-control-allow-private-network", "true");
    return answer;
  };
}

/**
 * Refuses requests from pages whose origin is not listed, because CORS alone only hides the response: a POST without a
 * body, or a WebSocket, would still take effect. Also records whether the request is from a foreign page, for routes
 * that change something.
 */
export function originCheck(origins: readonly string[]): MiddlewareHandler<AppEnv> {
  const open = origins.includes("*");
  const allowed = new Set(origins.map(normalizeOrigin));
  return async (context, next) => {
    const origin = context.req.header("origin");
    const site = context.req.header("sec-fetch-site") ?? "";
    const fits =
      origin === undefined ||
      allowed.has(normalizeOrigin(origin)) ||
      isSameOrigin(origin, context.req.header("host"));
    if (!open && !fits) {
      throw new ServiceError(
        "forbidden_host",
        "This origin is not allowed. Add it to http.cors_origins if it is yours.",
      );
    }
    const isForeign = FOREIGN_SITES.has(site)
      ? origin === undefined || !fits
      : !fits && site !== "same-origin";
    context.set("isForeignPage", isForeign);
    await next();
  };
}

/** True for the origin of the daemon's page; the scheme is ignored, because a proxy may add TLS. */
function isSameOrigin(origin: string, host: string | undefined): boolean {
  if (host === undefined || !URL.canParse(origin)) return false;
  const url = new URL(origin);
  return /^https?:$/.test(url.protocol) && url.host === host.toLowerCase();
}

function normalizeOrigin(origin: string): string {
  return origin.trim().toLowerCase().replace(/\/$/, "");
}
