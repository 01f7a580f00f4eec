import type { Inference } from "../inference/inference.ts";
import type { Dialect } from "./dialect.ts";

/**
 * A dialect once more, under the base of another API whose own server has it there too. As with that API, requests
 * load the models that they name.
 */
export function mountedDialect(dialect: Dialect, base: string): Dialect {
  return {
    ...dialect,
    prefixes: dialect.prefixes.map((prefix) => base + prefix),
    routes: (services) =>
      dialect
        .routes({ ...services, inference: loadingOnDemand(services.inference) })
        .map((route) => Object.assign({}, route, { path: base + route.path })),
  };
}

/** With a residency, even one that wishes nothing, a model that is on disk is loaded. */
function loadingOnDemand(inference: Inference): Inference {
  return {
    get activeRequests() {
      return inference.activeRequests;
    },
    generate: (request, signal) => inference.generate({ residency: {}, ...request }, signal),
    embed: (request, signal) => inference.embed({ residency: {}, ...request }, signal),
    rerank: (request, signal) => inference.rerank({ residency: {}, ...request }, signal),
    tokenize: (request, signal) => inference.tokenize({ residency: {}, ...request }, signal),
    detokenize: (request, signal) => inference.detokenize({ residency: {}, ...request }, signal),
    pieces: (request, signal) => inference.pieces({ residency: {}, ...request }, signal),
    promptOf: (request, signal) => inference.promptOf({ residency: {}, ...request }, signal),
  };
}
