import type { z } from "zod";
import type { ServiceError } from "../errors/service-error.ts";
import type { Route } from "./route.ts";

export interface RenderedError {
  readonly status: number;
  readonly body: object;
  readonly headers?: Readonly<Record<string, string>>;
}

/** One API of the daemon: its routes and the format of its errors. */
export interface Dialect {
  /** Its heading in the documentation. */
  readonly name: string;
  /**
   * Paths whose errors have this dialect's format, including those of the middleware, 404 and 405. A prefix covers itself
   * and everything below it; the longest matching prefix wins.
   */
  readonly prefixes: readonly string[];
  readonly routes: readonly Route[];
  /** Formats an error. The caller adds Retry-After and x-request-id. */
  renderError(error: ServiceError, requestId: string): RenderedError;
  /** Schema of the body that {@link renderError} makes, for the OpenAPI document. */
  readonly errorSchema: z.ZodType;
}

/** Mounts a dialect under the base path of another API whose own server also has it there. */
export function mountDialect(dialect: Dialect, base: string): Dialect {
  return {
    ...dialect,
    prefixes: dialect.prefixes.map((prefix) => base + prefix),
    routes: dialect.routes.map((route) => ({ ...route, path: base + route.path })),
  };
}
