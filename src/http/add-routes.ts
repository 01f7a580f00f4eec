import type { Hono } from "hono";
import { TrieRouter } from "hono/router/trie-router";
import { ServiceError } from "../errors/service-error.ts";
import { toError } from "../errors/to-error.ts";
import type { AppContext, AppEnv } from "./app-env.ts";
import { assertServing, errorResponse, type Life } from "./errors.ts";
import { type Api, isShared, openApiPath, type Route } from "./route.ts";

/** Serves the routes of dialects, behind what the app has been told to use so far, and answers everything else. */
export function addRoutes(app: Hono<AppEnv>, dialects: readonly Api[], life: Readonly<Life>): void {
  app.onError((error, context) => errorResponse(context, error, dialects));
  const routes = dialects.flatMap((dialect) => dialect.routes);
  for (const offered of inOrder(dialects)) {
    const { route } = offered;
    const pattern = openApiPath(route.path);
    app.on(route.method, route.path, async (context, next) => {
      if (!offered.isMeant(context.req.raw.headers)) {
        await next();
        return context.res;
      }
      context.set("route", pattern);
      if (!route.alwaysOn) assertServing({ life });
      try {
        return await route.handle(context);
      } catch (error) {
        // A request whose client leaves is aborted with a text, which would pass by the error handler and the log.
        throw toError(error);
      }
    });
  }
  const methods = methodsByPath(routes);
  const likely = likelyPaths(routes);
  app.notFound((context) => errorResponse(context, noSuchRoute(context, methods, likely), dialects));
}

interface OfferedRoute {
  readonly route: Route;
  /** Whether this route answers a request at its path, by the headers. */
  isMeant(headers: Headers): boolean;
}

/** Routes on shared paths come first: they leave to the others what is not meant for them. */
function inOrder(dialects: readonly Api[]): readonly OfferedRoute[] {
  const offered = dialects.flatMap((dialect) =>
    dialect.routes.map((route) => ({
      route,
      shared: isShared(dialect, route.path) ? dialect.shared : undefined,
    })),
  );
  return [
    ...offered.flatMap(({ route, shared }) =>
      shared ? [{ route, isMeant: (headers: Headers) => shared.isMeant(headers) }] : [],
    ),
    ...offered.flatMap(({ route, shared }) => (shared ? [] : [{ route, isMeant: () => true }])),
  ];
}

/** Says of a path whether all that is served there has a property, such as needing no API key. */
export function pathsWhere(
  dialects: readonly Api[],
  property: "keyless" | "takesFile",
): (path: string) => boolean {
  const router = new TrieRouter<boolean>();
  for (const route of dialects.flatMap(({ routes }) => routes))
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
  likely: ReturnType<typeof likelyPaths>,
): ServiceError {
  const { method, path } = context.req;
  const allowed = new Set(methods.match("ALL", path)[0].map(([allowedMethod]) => allowedMethod));
  if (allowed.size === 0) {
    const meant = likely(method, path);
    const hint = meant === undefined ? "" : ` There is ${meant}: check the client's base URL.`;
    return new ServiceError("route_not_found", `Endpoint not found: ${method} ${path}.${hint}`);
  }
  if (allowed.has("GET")) allowed.add("HEAD");
  const list = [...allowed, "OPTIONS"].toSorted().join(", ");
  context.res.headers.set("allow", list);
  return new ServiceError("method_not_allowed", `${path} does not serve ${method}, only ${list}.`);
}

/** No path that is served has as many parts, so longer ones need no help. */
const MAX_PARTS = 12;

/**
 * Finds, for paths that are not served, those that may be meant: clients are often given a base URL without the "/v1" or the
 * "/ollama" that theirs needs, or with one too many.
 */
function likelyPaths(routes: readonly Route[]): (method: string, path: string) => string | undefined {
  const router = new TrieRouter<string>();
  // A path that takes in everything below it is not what anybody has missed.
  const single = routes.filter(({ path }) => !path.includes("*"));
  for (const route of single) router.add(route.method, route.path, openApiPath(route.path));
  const bases = [...new Set(single.map(({ path }) => path.slice(0, path.indexOf("/", 1) + 1)))]
    .filter((base) => base !== "")
    .map((base) => base.slice(0, -1))
    // What most clients have left out.
    .toSorted((one, other) => Number(other === "/v1") - Number(one === "/v1"));
  return (method, path) => {
    const parts = path.split("/");
    if (parts.length > MAX_PARTS) return undefined;
    const ends = [path, ...parts.slice(2).map((_, index) => `/${parts.slice(index + 2).join("/")}`)];
    const candidates = ends.flatMap((end) => (end === "/" ? [] : ["", ...bases].map((base) => base + end)));
    return candidates.find((each) => router.match(method, each)[0].length > 0);
  };
}
