import type { Api } from "../../http/route.ts";
import type { ModelServices } from "../services.ts";
import { generationRoutes } from "./generation-routes.ts";
import { informationRoutes } from "./information-routes.ts";
import { ollamaErrorSchema, renderOllamaError } from "./ollama-error.ts";
import { storeRoutes } from "./store-routes.ts";

/**
 * Ollama's API. It has a prefix because some of its paths clash with the daemon's own API. Clients use
 * OLLAMA_HOST=http://host:8080/ollama.
 */
export const ollamaApi = (services: ModelServices): Api => ({
  name: "Ollama",
  prefixes: ["/ollama"],
  routes: [...informationRoutes(services), ...generationRoutes(services), ...storeRoutes(services)],
  renderError: renderOllamaError,
  errorSchema: ollamaErrorSchema,
});
