import { ServiceError } from "../errors/service-error.ts";
import { beyondBounds } from "./json-bounds.ts";

/**
 * Maximum nesting of any JSON from clients or for engines: bodies, frames, schemas, tool-call arguments, template variables.
 * Code that walks such values may be recursive, in llama.cpp too, and llama.cpp's time to build a grammar is quadratic in
 * the depth.
 */
export const MAX_JSON_DEPTH = 100;

/**
 * Refuses JSON text that is nested too deeply, before it is parsed. Invalid JSON may pass.
 * @param what names the text in the error: "The body"
 * @throws ServiceError invalid_json
 */
export function checkTextDepth(text: string, what: string, param?: string): void {
  const bounds = { depth: MAX_JSON_DEPTH, values: Number.POSITIVE_INFINITY };
  if (beyondBounds(text, bounds)) throw tooDeep(what, param);
}

export function tooDeep(what: string, param?: string): ServiceError {
  return new ServiceError(
    "invalid_json",
    `${what} may be nested ${MAX_JSON_DEPTH} levels deep at most.`,
    param === undefined ? {} : { param },
  );
}
