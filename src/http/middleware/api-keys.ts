import { createHash, timingSafeEqual } from "node:crypto";
import type { MiddlewareHandler } from "hono";
import { ServiceError } from "../../errors/service-error.ts";
import type { AppContext, AppEnv } from "../app-env.ts";

/** Values of Sec-Fetch-Site for the user's navigation and for the daemon's page. */
const OWN_PAGE = new Set(["same-origin", "none"]);

/**
 * Requires one of the keys as Bearer token or x-api-key, or, from the daemon's page, as the password of HTTP Basic, for
 * which browsers show a prompt. The IPC socket needs no key, because only its owner can open it. Without configured
 * keys nothing is checked.
 * @param isKeyless true for paths that are served without a key
 */
export function apiKeys(
  keys: readonly string[],
  isKeyless: (path: string) => boolean,
): MiddlewareHandler<AppEnv> {
  const digests = keys.map(digest);
  return async (context, next) => {
    const batch = context.env?.batch;
    const isOpen = digests.length === 0 || context.env?.ipc === true || isKeyless(context.req.path);
    const presented = isOpen ? [] : presentedKeys(context);
    const key = presented.find((each) => isKnown(each, digests));
    const owner = key === undefined ? undefined : digest(key).toString("hex");
    // A batch without an owner was created without a key.
    context.set("owner", batch ? batch.owner || undefined : owner);
    if (!isOpen && !batch && key === undefined) {
      context.res.headers.set("www-authenticate", challenge(context));
      throw new ServiceError(
        "unauthorized",
        presented.length === 0
          ? "This daemon requires an API key: send it as Authorization: Bearer or x-api-key."
          : "This API key is not one of the daemon's.",
      );
    }
    await next();
  };
}

function presentedKeys(context: AppContext): string[] {
  const keys: string[] = [];
  const header = context.req.header("x-api-key");
  if (header !== undefined) keys.push(header);
  const [scheme = "", value = ""] = (context.req.header("authorization") ?? "").trim().split(/\s+/, 2);
  if (scheme.toLowerCase() === "bearer") keys.push(value);
  if (scheme.toLowerCase() === "basic" && isOwnPage(context)) keys.push(basicPassword(value));
  return keys;
}

/** True for requests of the daemon's page: browsers send Basic credentials also with requests of other pages. */
function isOwnPage(context: AppContext): boolean {
  return OWN_PAGE.has(context.req.header("sec-fetch-site") ?? "");
}

function basicPassword(credentials: string): string {
  const text = Buffer.from(credentials, "base64").toString("utf8");
  return text.slice(text.indexOf(":") + 1);
}

/**
 * Value of WWW-Authenticate. Only for navigations it makes the browser ask; scripts of the page ask for the key
 * themselves.
 */
function challenge(context: AppContext): string {
  const bearer = 'Bearer realm="daybreak"';
  const isOpened = context.req.header("sec-fetch-mode") === "navigate";
  return isOpened && isOwnPage(context) ? `Basic realm="daybreak", charset="UTF-8", ${bearer}` : bearer;
}

/** Hash of a key: the comparison needs equal lengths. */
function digest(key: string): Buffer {
  return createHash("sha256").update(key).digest();
}

/** Compares with all keys in constant time. */
function isKnown(key: string, digests: readonly Buffer[]): boolean {
  const presented = digest(key);
  let known = false;
  for (const candidate of digests) known = timingSafeEqual(presented, candidate) || known;
  return known;
}
