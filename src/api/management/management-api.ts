import { defineRoute, type Api } from "../../http/route.ts";
import { nativeErrorSchema, renderNativeError } from "../../http/errors.ts";
import { openApiDocument } from "../../http/openapi-document.ts";
import { activityRoutes, eventRoutes } from "./event-routes.ts";
import { browserRoutes, pageRoutes } from "./page-routes.ts";
import { defaultModelRoutes } from "./default-model-routes.ts";
import { hubRoutes } from "./hub-routes.ts";
import { importRoutes, quantizeRoutes } from "./import-routes.ts";
import type { ManagementServices } from "./management-services.ts";
import { modelFileRoutes } from "./model-file-routes.ts";
import { modelRoutes } from "./model-routes.ts";
import { slotRoutes } from "./slot-routes.ts";
import { fleetRoutes, systemRoutes } from "./system-routes.ts";

/**
 * The daemon's own API without generation: models, defaults, status, health, metrics, events, page, documentation.
 * @param documented returns the APIs of the OpenAPI document; a function because this API is one of them
 */
export const managementApi = (services: ManagementServices, documented: () => readonly Api[]): Api => ({
  name: "Management",
  prefixes: ["/"],
  routes: [
    ...systemRoutes(services),
    ...eventRoutes(services),
    ...activityRoutes(services),
    ...fleetRoutes(services),
    ...hubRoutes(services),
    ...modelFileRoutes(services),
    ...slotRoutes(services),
    ...importRoutes(services),
    ...quantizeRoutes(services),
    ...modelRoutes(services),
    ...defaultModelRoutes(services),
    ...pageRoutes(services),
    ...browserRoutes(services),
    defineRoute({
      method: "GET",
      path: "/openapi.json",
      tag: "Documentation",
      summary: "The OpenAPI 3.1 document of this API",
      answers: [{ description: "The document." }],
      alwaysOn: true,
      handle: (context) => context.json(openApiDocument(services.version, documented())),
    }),
  ],
  renderError: renderNativeError,
  errorSchema: nativeErrorSchema,
});
