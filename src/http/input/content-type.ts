import { ServiceError } from "../../errors/service-error.ts";

const JSON_TYPE = /^application\/(?:[\w.+-]+\+)?json$/;
/** What `curl -d` sends when no header is given. */
const CURL_DEFAULT_TYPE = "application/x-www-form-urlencoded";

/** Browsers add credentials of other schemes by themselves. */
const BEARER = /^bearer /i;

/** Throws `unsupported_media_type` for a compressed body, which is not decompressed. */
export function assertNotCompressed(headers: Headers): void {
  const encoding = headers.get("content-encoding")?.trim().toLowerCase() ?? "";
  if (encoding === "" || encoding === "identity") return;
  throw new ServiceError(
    "unsupported_media_type",
    `The body must not be compressed, but "Content-Encoding: ${encoding.slice(0, 100)}" says that it is.`,
  );
}

/**
 * Throws `unsupported_media_type` for a body that is not declared as JSON.
 *
 * Pages can send bodies of some other types across origins without a preflight, so requests from a browser (with Origin)
 * must be declared as JSON: then CORS decides. Other clients need no header, so that `curl -d '{…}'` works.
 */
export function assertJsonContentType(headers: Headers): void {
  const type = mediaType(headers);
  if (JSON_TYPE.test(type)) return;
  const fromPage = headers.has("origin") || headers.has("sec-fetch-site");
  if (!fromPage && (type === "" || type === CURL_DEFAULT_TYPE)) return;
  throw new ServiceError(
    "unsupported_media_type",
    `The body must be JSON with "Content-Type: application/json"${type === "" ? "" : `, not "${type.slice(0, 100)}"`}.`,
  );
}

/**
 * Throws `unsupported_media_type` for a request without a body from a foreign page that would change something. Any page
 * may send a POST without a preflight; if it is declared as JSON or bears a token there was one, and CORS has decided.
 */
export function assertPreflighted(headers: Headers, isForeignPage: boolean): void {
  const isAsked = JSON_TYPE.test(mediaType(headers)) || BEARER.test(headers.get("authorization") ?? "");
  if (!isForeignPage || isAsked) return;
  throw new ServiceError(
    "unsupported_media_type",
    'A page of another origin must send this with "Content-Type: application/json", or its origin must be named in ' +
      "http.cors_origins.",
  );
}

/** The type of the body, without parameters, in lower case; empty if it is not stated. */
export function mediaType(headers: Headers): string {
  return (headers.get("content-type") ?? "").split(";", 1)[0]!.trim().toLowerCase();
}
