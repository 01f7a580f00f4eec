import type { Api } from "../../http/route.ts";
import type { ModelServices } from "../services.ts";
import { applyTemplateRoute } from "./apply-template.ts";
import { completionRoute, infillRoute } from "./completion-routes.ts";
import { llamaServerErrorSchema, renderLlamaServerError } from "./llama-server-error.ts";
import {
  adaptersRoute,
  changePropsRoute,
  propsRoute,
  scaleAdaptersRoute,
  slotActionRoute,
  slotsRoute,
} from "./server-routes.ts";
import { embeddingRoute, rerankRoute } from "./vector-routes.ts";

/**
 * Routes of llama.cpp's server that no other API has, for its clients, such as editor plug-ins. Its routes for tokens
 * are part of the native API.
 */
export const llamaServerApi = (services: ModelServices): Api => ({
  name: "llama-server",
  prefixes: [
    "/completion",
    "/completions",
    "/infill",
    "/props",
    "/slots",
    "/apply-template",
    "/embedding",
    "/embeddings",
    "/rerank",
    "/reranking",
    "/lora-adapters",
  ],
  routes: [
    completionRoute(services, "/completion"),
    completionRoute(services, "/completions"),
    infillRoute(services),
    propsRoute(services),
    changePropsRoute(),
    slotsRoute(services),
    slotActionRoute(services),
    applyTemplateRoute(services),
    embeddingRoute(services, "/embedding"),
    embeddingRoute(services, "/embeddings"),
    rerankRoute(services, "/rerank"),
    rerankRoute(services, "/reranking"),
    adaptersRoute(services),
    scaleAdaptersRoute(services),
  ],
  renderError: renderLlamaServerError,
  errorSchema: llamaServerErrorSchema,
});
