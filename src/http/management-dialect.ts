import type { Dialect } from "./dialect.ts";
import { nativeErrorSchema, renderNativeError } from "./errors/native-error.ts";
import { defaultModelRoutes } from "./models/default-model-routes.ts";
import { modelRoutes } from "./models/model-routes.ts";
import { storeRoutes } from "./models/store-routes.ts";
import { eventRoutes } from "./system/event-routes.ts";
import { pageRoutes } from "./system/page-routes.ts";
import { shutdownRoutes } from "./system/shutdown-routes.ts";
import { statusRoutes } from "./system/status-routes.ts";

/** The daemon's own routes beside generation: models, defaults, status, health, metrics, events, page. */
export const managementDialect: Dialect = {
  name: "Management",
  prefixes: ["/"],
  routes: (services) => [
    ...statusRoutes(services),
    ...eventRoutes(services),
    ...shutdownRoutes(services),
    // Before the routes whose name may be any path.
    ...storeRoutes(services),
    ...modelRoutes(services),
    ...defaultModelRoutes(services),
    ...pageRoutes(services),
  ],
  renderError: renderNativeError,
  errorSchema: nativeErrorSchema,
};
