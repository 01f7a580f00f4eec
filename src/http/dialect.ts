import type { z } from "zod";
import type { ServiceError } from "../errors/service-error.ts";
import type { Route } from "./route.ts";

export interface RenderedError {
  readonly status: number;
  readonly body: object;
  readonly headers?: Readonly<Record<string, string>>;
}

/** Paths that two APIs have in common: the headers tell which of them a client speaks. */
interface SharedPaths {
  /** As {@link Dialect.prefixes}. */
  readonly prefixes: readonly string[];
  /** Whether a request there is meant for this dialect; the other one gets all others. */
  isMeant(headers: Headers): boolean;
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
  /** Paths of another dialect where this one answers as well. */
  readonly shared?: SharedPaths;
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
    ...(dialect.shared && {
      shared: { ...dialect.shared, prefixes: dialect.shared.prefixes.map((prefix) => base + prefix) },
    }),
    routes: dialect.routes.map((route) => ({ ...route, path: base + route.path })),
  };
}

/** Whether a prefix covers a path: itself and everything below it. */
export function covers(prefix: string, path: string): boolean {
  return prefix === "/" || path === prefix || path.startsWith(`${prefix}/`);
}

/** Whether a dialect answers at a path only for requests that are meant for it. */
export function isShared({ shared }: Dialect, path: string): boolean {
  return shared?.prefixes.some((prefix) => covers(prefix, path)) ?? false;
}
