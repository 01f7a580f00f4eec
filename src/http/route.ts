import type { z } from "zod";
import type { ServiceError } from "../errors/service-error.ts";
import type { AppContext } from "./app-env.ts";
import { parseInput } from "./input/common-fields.ts";
import { assertPreflighted, readJson } from "./input/read-json.ts";

type Method = "GET" | "POST" | "DELETE";

/** Possible response of a route, for the OpenAPI document. */
export interface RouteAnswer {
  /** Default: 200. */
  readonly status?: number;
  /** Default: application/json. */
  readonly contentType?: string;
  readonly description: string;
  /** Schema of the body, or of one line or event of a stream. */
  readonly schema?: z.ZodType;
}

interface RouteDescription {
  readonly method: Method;
  /** Path in Hono's syntax: "/api/models/:name{.+}/unload". */
  readonly path: string;
  readonly tag: string;
  /** One line. */
  readonly summary: string;
  /** Markdown. */
  readonly description?: string;
  readonly answers: readonly RouteAnswer[];
  /** True to serve the route also while the daemon starts or drains, when others answer 503. */
  readonly alwaysOn?: boolean;
  /** True if the body is a file with a separate size limit. The same for all routes of the path. */
  readonly takesFile?: boolean;
  /** True to serve the route without an API key, for public data. */
  readonly keyless?: boolean;
  /** Value of an empty JSON body; absent: an empty body is refused. */
  readonly bodyWhenEmpty?: unknown;
}

/** Route of the app and of the OpenAPI document. */
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
 * Creates a route whose handler gets the parsed body and query. Invalid requests do not reach the handler; they fail
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

/** Converts "/api/models/:name{.+}/unload" to "/api/models/{name}/unload". */
export function openApiPath(path: string): string {
  return path.replaceAll(/:(\w+)(?:\{[^/]*?\}(?=\/|$))?/g, "{$1}");
}

export interface RenderedError {
  readonly status: number;
  readonly body: object;
  readonly headers?: Readonly<Record<string, string>>;
}

/** Paths that two APIs share; the headers decide which one a request is for. */
interface SharedPaths {
  /** Prefixes as in {@link Api.prefixes}. */
  readonly prefixes: readonly string[];
  /** True if a request is for this API; the other API gets the rest. */
  matches(headers: Headers): boolean;
}

/** API of the daemon: its routes and the format of its errors. */
export interface Api {
  /** Heading in the documentation. */
  readonly name: string;
  /**
   * Path prefixes whose errors have this API's format, including those of middleware, 404 and 405. A prefix covers
   * itself and everything below it; the longest matching prefix wins.
   */
  readonly prefixes: readonly string[];
  /** Paths of another API that this one serves as well. */
  readonly shared?: SharedPaths;
  readonly routes: readonly Route[];
  /** Formats an error; the caller adds Retry-After and x-request-id. */
  renderError(error: ServiceError, requestId: string): RenderedError;
  /** Schema of error bodies, for the OpenAPI document. */
  readonly errorSchema: z.ZodType;
}

/** Copies an API below a base path. */
export function mountApi(api: Api, base: string): Api {
  return {
    ...api,
    prefixes: api.prefixes.map((prefix) => base + prefix),
    ...(api.shared && {
      shared: { ...api.shared, prefixes: api.shared.prefixes.map((prefix) => base + prefix) },
    }),
    routes: api.routes.map((route) => ({ ...route, path: base + route.path })),
  };
}

/** True if a prefix is a path or an ancestor of it. */
export function covers(prefix: string, path: string): boolean {
  return prefix === "/" || path === prefix || path.startsWith(`${prefix}/`);
}

/** True if an API shares a path with another one. */
export function isShared({ shared }: Api, path: string): boolean {
  return shared?.prefixes.some((prefix) => covers(prefix, path)) ?? false;
}
