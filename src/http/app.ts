import { Hono } from "hono";
import type { Logger } from "pino";
import type { Config } from "../config/schema.ts";
import type { AppEnv } from "./app-env.ts";
import type { Api } from "./route.ts";
import type { DaemonState } from "./errors.ts";
import { addRoutes, pathsWhere } from "./add-routes.ts";
import { apiKeys } from "./middleware/api-keys.ts";
import { corsHeaders, originCheck } from "./middleware/cors-policy.ts";
import { contentLengthLimit } from "./input/read-json.ts";
import { hostCheck, localClient } from "./client-address.ts";
import { rateLimit, surplusConnection } from "./middleware/rate-limit.ts";
import { answerWarnings } from "./middleware/answer-warnings.ts";
import { type FollowRequest, requestId, requestLog } from "./middleware/request-log.ts";

export type App = Hono<AppEnv>;

interface AppOptions {
  readonly config: Pick<Config, "http" | "api_keys">;
  readonly logger: Logger;
  readonly life: Readonly<DaemonState>;
  /** Observer of requests. */
  readonly activity?: { readonly followRequest: FollowRequest };
}

/** Creates the HTTP app with middleware and routes. It needs no socket: tests call `app.request()`. */
export function createApp({ config, logger, life, activity }: AppOptions, apis: readonly Api[]): App {
  const { http, api_keys: keys } = config;
  const app = new Hono<AppEnv>();
  app.use(
    requestId(logger, http.body_limit),
    answerWarnings(),
    requestLog(activity?.followRequest),
    surplusConnection(),
    hostCheck(http.addr, http.allowed_hosts),
    corsHeaders(http.cors_origins),
    originCheck(http.cors_origins),
    localClient(),
    rateLimit(http.rate_limit),
    apiKeys(keys, pathsWhere(apis, "keyless")),
    contentLengthLimit(http.body_limit, pathsWhere(apis, "takesFile")),
  );
  addRoutes(app, apis, life);
  return app;
}
