import type { Dialect } from "../../http/dialect.ts";
import type { ModelServices } from "../services.ts";
import { generationRoutes } from "./generation-routes.ts";
import { informationRoutes } from "./information-routes.ts";
import { ollamaErrorSchema, renderOllamaError } from "./ollama-error.ts";
import { storeRoutes } from "./store-routes.ts";

/**
 * The API of Ollama, under a base of its own since it shares paths with the daemon's own API and differs in what
 * they mean: its clients take OLLAMA_HOST=http://host:8080/ollama.
 */
export const ollamaDialect = (services: ModelServices): Dialect => ({
  name: "Ollama",
  prefixes: ["/ollama"],
  routes: [...informationRoutes(services), ...generationRoutes(services), ...storeRoutes(services)],
  renderError: renderOllamaError,
  errorSchema: ollamaErrorSchema,
});
