import { Hono } from "hono";
import { TrieRouter } from "hono/router/trie-router";
import { ServiceError } from "../errors/service-error.ts";
import type { AppContext, AppEnv } from "./app-env.ts";
import type { Dialect } from "./dialect.ts";
import { dialects as allDialects, mountedDialects } from "./dialects.ts";
import { errorResponse } from "./errors/error-response.ts";
import { assertServing } from "./errors/serving.ts";
import { managementDialect } from "./management-dialect.ts";
import { apiKeys } from "./middleware/api-keys.ts";
import { corsHeaders, originCheck } from "./middleware/cors-policy.ts";
import { declaredLength } from "./middleware/declared-length.ts";
import { hostCheck } from "./middleware/host-check.ts";
import { rateLimit } from "./middleware/rate-limit.ts";
import { requestId } from "./middleware/request-id.ts";
import { requestLog } from "./middleware/request-log.ts";
import { surplusConnection } from "./middleware/surplus-connection.ts";
import { documentationRoutes } from "./openapi/documentation-routes.ts";
import type { DescribedDialect } from "./openapi/openapi-document.ts";
import type { Route } from "./route.ts";
import type { Services } from "./services.ts";

export type App = Hono<AppEnv>;

/** The whole HTTP side of the daemon, without a socket: `app.request()` drives it in tests. */
export function createApp(
  services: Services,
  documented: readonly Dialect[] = allDialects,
  mounted: readonly Dialect[] = mountedDialects,
): App {
  const dialects = [...documented, ...mounted];
  const { http, api_keys: keys } = services.config;
  const app = new Hono<AppEnv>();
  app.onError((error, context) => errorResponse(context, error, dialects));
  app.use(
    requestId(services.logger, http.body_limit),
    requestLog(),
    surplusConnection(),
    hostCheck(http.addr, http.allowed_hosts),
    corsHeaders(http.cors_origins),
    originCheck(http.cors_origins),
    rateLimit(http.rate_limit),
    apiKeys(keys),
    declaredLength(http.body_limit),
  );
  const routes = [
    ...allRoutes(services, documented),
    ...mounted.flatMap((dialect) => dialect.routes(services)),
  ];
  for (const route of routes) app.on(route.method, route.path, (context) => serve(services, route, context));
  const methods = methodsByPath(routes);
  app.notFound((context) => errorResponse(context, noSuchRoute(context, methods), dialects));
  return app;
}

/** The routes of the dialects and those that describe them. */
function allRoutes(services: Services, dialects: readonly Dialect[]): readonly Route[] {
  const described: DescribedDialect[] = dialects.map((dialect) => ({
    dialect,
    routes: dialect.routes(services),
  }));
  const documentation = documentationRoutes(services.version, () => described);
  described.push({ dialect: managementDialect, routes: documentation });
  return described.flatMap(({ routes }) => routes);
}

async function serve(services: Services, route: Route, context: AppContext): Promise<Response> {
  if (!route.alwaysOn) assertServing(services);
  return await route.handle(context);
}

function methodsByPath(routes: readonly Route[]): TrieRouter<string> {
  const router = new TrieRouter<string>();
  for (const route of routes) router.add("ALL", route.path, route.method);
  return router;
}

/** 404, or 405 with Allow when the path exists for other methods. */
function noSuchRoute(context: AppContext, methods: TrieRouter<string>): ServiceError {
  const { method, path } = context.req;
  const allowed = new Set(methods.match("ALL", path)[0].map(([allowedMethod]) => allowedMethod));
  if (allowed.size === 0)
    return new ServiceError("route_not_found", `There is no endpoint ${method} ${path}.`);
  if (allowed.has("GET")) allowed.add("HEAD");
  const list = [...allowed, "OPTIONS"].toSorted().join(", ");
  context.res.headers.set("allow", list);
  return new ServiceError("method_not_allowed", `${path} does not serve ${method}, only ${list}.`);
}
