import type { Hono } from "hono";
import { TrieRouter } from "hono/router/trie-router";
import { ServiceError, toError } from "../errors/service-error.ts";
import type { AppContext, AppEnv } from "./app-env.ts";
import { assertServing, errorResponse, type DaemonState } from "./errors.ts";
import { type Api, isShared, openApiPath, type Route } from "./route.ts";

/** Adds the routes of all APIs behind the app's middleware, and answers all other requests with an error. */
export function addRoutes(app: Hono<AppEnv>, apis: readonly Api[], life: Readonly<DaemonState>): void {
  app.onError((error, context) => errorResponse(context, error, apis));
  const routes = apis.flatMap((api) => api.routes);
  for (const served of orderRoutes(apis)) {
    const { route } = served;
    const pattern = openApiPath(route.path);
    app.on(route.method, route.path, async (context, next) => {
      if (!served.matches(context.req.raw.headers)) {
        await next();
        return context.res;
      }
      context.set("route", pattern);
      if (!route.alwaysOn) assertServing({ life });
      try {
        return await route.handle(context);
      } catch (error) {
        // An aborted request may throw a string, which Hono would pass neither to the error handler nor to the log.
        throw toError(error);
      }
    });
  }
  const methods = methodsByPath(routes);
  const findSimilar = similarPaths(routes);
  app.notFound((context) => errorResponse(context, noSuchRoute(context, methods, findSimilar), apis));
}

interface ServedRoute {
  readonly route: Route;
  /** True if this route answers a request at its path with these headers. */
  matches(headers: Headers): boolean;
}

/** Puts routes on shared paths first; they pass requests on that do not match. */
function orderRoutes(apis: readonly Api[]): readonly ServedRoute[] {
  const served = apis.flatMap((api) =>
    api.routes.map((route) => ({
      route,
      shared: isShared(api, route.path) ? api.shared : undefined,
    })),
  );
  return [
    ...served.flatMap(({ route, shared }) =>
      shared ? [{ route, matches: (headers: Headers) => shared.matches(headers) }] : [],
    ),
    ...served.flatMap(({ route, shared }) => (shared ? [] : [{ route, matches: () => true }])),
  ];
}

/** Returns a function that is true for paths on which all routes have a property. */
export function pathsWhere(
  apis: readonly Api[],
  property: "keyless" | "takesFile",
): (path: string) => boolean {
  const router = new TrieRouter<boolean>();
  for (const route of apis.flatMap(({ routes }) => routes))
    router.add("ALL", route.path, route[property] ?? false);
  return (path) => {
    const [found] = router.match("ALL", path);
    return found.length > 0 && found.every(([has]) => has);
  };
}

function methodsByPath(routes: readonly Route[]): TrieRouter<string> {
  const router = new TrieRouter<string>();
  for (const route of routes) router.add("ALL", route.path, route.method);
  return router;
}

/** 404, or 405 with Allow when the path exists for other methods. */
function noSuchRoute(
  context: AppContext,
  methods: TrieRouter<string>,
  findSimilar: ReturnType<typeof similarPaths>,
): ServiceError {
  const { method, path } = context.req;
  const allowed = new Set(methods.match("ALL", path)[0].map(([allowedMethod]) => allowedMethod));
  if (allowed.size === 0) {
    const similar = findSimilar(method, path);
    const hint = similar === undefined ? "" : ` There is ${similar}: check the client's base URL.`;
    return new ServiceError("route_not_found", `Endpoint not found: ${method} ${path}.${hint}`);
  }
  if (allowed.has("GET")) allowed.add("HEAD");
  const list = [...allowed, "OPTIONS"].toSorted().join(", ");
  context.res.headers.set("allow", list);
  return new ServiceError("method_not_allowed", `${path} does not serve ${method}, only ${list}.`);
}

/** Longer paths than any route's get no suggestion. */
const MAX_PARTS = 12;

/**
 * Returns a function that suggests a route for an unknown path. Base URLs in clients often lack a "/v1" or "/ollama",
 * or have one too many.
 */
function similarPaths(routes: readonly Route[]): (method: string, path: string) => string | undefined {
  const router = new TrieRouter<string>();
  // Wildcard routes would match every path.
  const single = routes.filter(({ path }) => !path.includes("*"));
  for (const route of single) router.add(route.method, route.path, openApiPath(route.path));
  const bases = [...new Set(single.map(({ path }) => path.slice(0, path.indexOf("/", 1) + 1)))]
    .filter((base) => base !== "")
    .map((base) => base.slice(0, -1))
    // The most commonly missing prefix first.
    .toSorted((one, other) => Number(other === "/v1") - Number(one === "/v1"));
  return (method, path) => {
    const parts = path.split("/");
    if (parts.length > MAX_PARTS) return undefined;
    const ends = [path, ...parts.slice(2).map((_, index) => `/${parts.slice(index + 2).join("/")}`)];
    const candidates = ends.flatMap((end) => (end === "/" ? [] : ["", ...bases].map((base) => base + end)));
    return candidates.find((each) => router.match(method, each)[0].length > 0);
  };
}
