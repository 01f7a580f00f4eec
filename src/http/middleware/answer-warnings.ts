import type { MiddlewareHandler } from "hono";
import type { AppEnv } from "../app-env.ts";

/** Limits of the header, which proxies must pass on. */
const MAX_WARNINGS = 10;
const MAX_LENGTH = 200;

/** Header with warnings about ignored parts of the request. */
export const WARNING_HEADER = "x-daybreak-warning";

/** Adds the warnings of the context to the response headers, joined by semicolons. */
export function answerWarnings(): MiddlewareHandler<AppEnv> {
  return async (context, next) => {
    await next();
    const warnings = context.get("warnings") ?? [];
    if (warnings.length > 0) context.header(WARNING_HEADER, joined(warnings));
  };
}

function joined(warnings: readonly string[]): string {
  const included = warnings.slice(0, MAX_WARNINGS).map((warning) => inAscii(warning.slice(0, MAX_LENGTH)));
  const more = warnings.length - included.length;
  return [...included, ...(more > 0 ? [`and ${more} more`] : [])].join("; ");
}

/** Escapes all but printable ASCII, since headers allow nothing else. */
function inAscii(text: string): string {
  return text.replaceAll(/[^\x20-\x7e]/g, (character) => {
    return `\\u${character.charCodeAt(0).toString(16).padStart(4, "0")}`;
  });
}
