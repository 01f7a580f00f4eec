import type { z } from "zod";
import type { ServiceError } from "../errors/service-error.ts";
import type { AppContext } from "./app-env.ts";
import { parseInput } from "./input/common-fields.ts";
import { assertPreflighted, readJson } from "./input/read-json.ts";

type Method = "GET" | "POST" | "DELETE";

/** One possible answer of a route, for the documentation. */
export interface RouteAnswer {
  /** 200 when absent. */
  readonly status?: number;
  /** application/json when absent. */
  readonly contentType?: string;
  readonly description: string;
  /** Schema of the body, or of one line or event of a stream. */
  readonly schema?: z.ZodType;
}

interface RouteDescription {
  readonly method: Method;
  /** In Hono's syntax: "/api/models/:name{.+}/unload". */
  readonly path: string;
  readonly tag: string;
  /** One line. */
  readonly summary: string;
  /** Markdown. */
  readonly description?: string;
  readonly answers: readonly RouteAnswer[];
  /** Also served while the daemon starts or drains, when other routes answer 503. */
  readonly alwaysOn?: boolean;
  /** The body is a file that goes to the disk, with a limit of its own. All routes of the path have this. */
  readonly takesFile?: boolean;
  /** Served without an API key where keys are configured: for what everybody can have anyway. */
  readonly keyless?: boolean;
  /** Stands for a JSON body that is empty; absent: an empty body is refused. */
  readonly bodyWhenEmpty?: unknown;
}

/** A route, as registered by the app and described in the OpenAPI document. */
export interface Route extends RouteDescription {
  readonly body?: z.ZodType;
  readonly query?: z.ZodType;
  handle(context: AppContext): Response | Promise<Response>;
}

interface RouteInput<Body, Query> {
  readonly body: Body;
  readonly query: Query;
}

interface RouteDefinition<Body extends z.ZodType, Query extends z.ZodType> extends RouteDescription {
  /** Schema of the JSON body; absent: the body is not read. */
  readonly body?: Body;
  /** Schema of the query as an object of strings; absent: the query is ignored. */
  readonly query?: Query;
  handle(
    context: AppContext,
    input: RouteInput<z.output<Body>, z.output<Query>>,
  ): Response | Promise<Response>;
}

/**
 * Creates a route whose handler gets the parsed body and query. Invalid requests never reach the handler: they are answered
 * with `invalid_json`, `invalid_parameter`, `payload_too_large` or `unsupported_media_type`.
 */
export function defineRoute<
  Body extends z.ZodType = z.ZodUndefined,
  Query extends z.ZodType = z.ZodUndefined,
>(definition: RouteDefinition<Body, Query>): Route {
  const { body: bodySchema, query: querySchema } = definition;
  return {
    ...definition,
    async handle(context) {
      if (!bodySchema && definition.method !== "GET")
        assertPreflighted(context.req.raw.headers, context.get("isForeignPage"));
      const query = querySchema ? parseInput(querySchema, context.req.query()) : undefined;
      const body = bodySchema ? await readJson(context, bodySchema, definition.bodyWhenEmpty) : undefined;
      // An absent schema is inferred as ZodUndefined, whose output is undefined.
      // oxlint-disable-next-line typescript/no-unsafe-type-assertion
      const input = { body, query } as RouteInput<z.output<Body>, z.output<Query>>;
      return await definition.handle(context, input);
    },
  };
}

/** "/api/models/:name{.+}/unload" → "/api/models/{name}/unload". */
export function openApiPath(path: string): string {
  return path.replaceAll(/:(\w+)(?:\{[^/]*?\}(?=\/|$))?/g, "{$1}");
}

export interface RenderedError {
  readonly status: number;
  readonly body: object;
  readonly headers?: Readonly<Record<string, string>>;
}

/** Paths that two APIs have in common: the headers tell which of them a client speaks. */
interface SharedPaths {
  /** As {@link Api.prefixes}. */
  readonly prefixes: readonly string[];
  /** Whether a request there is meant for this dialect; the other one gets all others. */
  isMeant(headers: Headers): boolean;
}

/** One API of the daemon: its routes and the format of its errors. */
export interface Api {
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
export function mountApi(dialect: Api, base: string): Api {
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
export function isShared({ shared }: Api, path: string): boolean {
  return shared?.prefixes.some((prefix) => covers(prefix, path)) ?? false;
}
