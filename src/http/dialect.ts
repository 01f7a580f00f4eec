import type { z } from "zod";
import type { ServiceError } from "../errors/service-error.ts";
import type { Route } from "./route.ts";

export interface RenderedError {
  readonly status: number;
  readonly body: object;
  readonly headers?: Readonly<Record<string, string>>;
}

/** One API that the daemon speaks: its routes and the shape of its errors. */
export interface Dialect {
  /** For people: the heading in the documentation. */
  readonly name: string;
  /**
   * Paths whose errors have this dialect's shape, those of the middleware, 404 and 405 included. A prefix
   * covers itself and everything below it; the longest prefix that fits a path wins.
   */
  readonly prefixes: readonly string[];
  readonly routes: readonly Route[];
  /** The shape of an error on the wire. Retry-After and x-request-id are added by the caller. */
  renderError(error: ServiceError, requestId: string): RenderedError;
  /** Schema of the body that {@link renderError} makes, for the OpenAPI document. */
  readonly errorSchema: z.ZodType;
}

/** A dialect under the base of another API whose own server has it there too. */
export function mountDialect(dialect: Dialect, base: string): Dialect {
  return {
    ...dialect,
    prefixes: dialect.prefixes.map((prefix) => base + prefix),
    routes: dialect.routes.map((route) => ({ ...route, path: base + route.path })),
  };
}
