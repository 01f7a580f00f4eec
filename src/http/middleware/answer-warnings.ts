import type { MiddlewareHandler } from "hono";
import type { AppContext, AppEnv } from "../app-env.ts";

/** Clients see them in their own logs; no more than fits there, and than proxies pass on. */
const MAX_WARNINGS = 10;
const MAX_LENGTH = 200;

/** What a request asked for and did not get, though it was answered. */
export const WARNING_HEADER = "x-daybreak-warning";

/** Adds them to the answer's headers, joined by semicolons. */
export function answerWarnings(): MiddlewareHandler<AppEnv> {
  return async (context, next) => {
    await next();
    const warnings = context.get("warnings") ?? [];
    if (warnings.length > 0) context.header(WARNING_HEADER, joined(warnings));
  };
}

/** Has the answer, streamed or not, tell these warnings. */
export function addWarnings(context: AppContext, warnings: readonly string[]): void {
  context.set("warnings", warnings);
}

function joined(warnings: readonly string[]): string {
  const told = warnings.slice(0, MAX_WARNINGS).map((warning) => inAscii(warning.slice(0, MAX_LENGTH)));
  const more = warnings.length - told.length;
  return [...told, ...(more > 0 ? [`and ${more} more`] : [])].join("; ");
}

/** Headers have no other characters. */
function inAscii(text: string): string {
  return text.replaceAll(/[^\x20-\x7e]/g, (character) => {
    return `\\u${character.charCodeAt(0).toString(16).padStart(4, "0")}`;
  });
}
