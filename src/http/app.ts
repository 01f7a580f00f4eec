import { Hono } from "hono";
import { TrieRouter } from "hono/router/trie-router";
import type { Logger } from "pino";
import { ServiceError } from "../errors/service-error.ts";
import type { Config } from "../config/schema.ts";
import type { AppContext, AppEnv } from "./app-env.ts";
import type { Dialect } from "./dialect.ts";
import { errorResponse } from "./errors/error-response.ts";
import { assertServing, type Life } from "./errors/serving.ts";
import { apiKeys } from "./middleware/api-keys.ts";
import { corsHeaders, originCheck } from "./middleware/cors-policy.ts";
import { contentLengthLimit } from "./input/read-json.ts";
import { hostCheck } from "./middleware/host-check.ts";
import { rateLimit } from "./middleware/rate-limit.ts";
import { requestId } from "./middleware/request-id.ts";
import { requestLog } from "./middleware/request-log.ts";
import { surplusConnection } from "./middleware/surplus-connection.ts";
import type { Route } from "./route.ts";

export type App = Hono<AppEnv>;

interface AppOptions {
  readonly config: Pick<Config, "http" | "api_keys">;
  readonly logger: Logger;
  readonly life: Readonly<Life>;
}

/** The whole HTTP side of the daemon, without a socket: `app.request()` drives it in tests. */
export function createApp({ config, logger, life }: AppOptions, dialects: readonly Dialect[]): App {
  const { http, api_keys: keys } = config;
  const app = new Hono<AppEnv>();
  app.onError((error, context) => errorResponse(context, error, dialects));
  app.use(
    requestId(logger, http.body_limit),
    requestLog(),
    surplusConnection(),
    hostCheck(http.addr, http.allowed_hosts),
    corsHeaders(http.cors_origins),
    originCheck(http.cors_origins),
    rateLimit(http.rate_limit),
    apiKeys(keys),
    contentLengthLimit(http.body_limit),
  );
  const routes = dialects.flatMap((dialect) => dialect.routes);
  for (const route of routes) {
    app.on(route.method, route.path, async (context) => {
      if (!route.alwaysOn) assertServing({ life });
      return await route.handle(context);
    });
  }
  const methods = methodsByPath(routes);
  app.notFound((context) => errorResponse(context, noSuchRoute(context, methods), dialects));
  return app;
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
    return new ServiceError("route_not_found", `Endpoint not found: ${method} ${path}.`);
  if (allowed.has("GET")) allowed.add("HEAD");
  const list = [...allowed, "OPTIONS"].toSorted().join(", ");
  context.res.headers.set("allow", list);
  return new ServiceError("method_not_allowed", `${path} does not serve ${method}, only ${list}.`);
}
