import type { Inference } from "./inference.ts";

/**
 * Makes requests load the models that they name: a request with a residency, even an empty one, loads its model.
 */
export function loadOnDemand(inference: Inference): Inference {
  return {
    get activeRequests() {
      return inference.activeRequests;
    },
    get loads() {
      return inference.loads;
    },
    generate: (request, signal) => inference.generate({ residency: {}, ...request }, signal),
    embed: (request, signal) => inference.embed({ residency: {}, ...request }, signal),
    rerank: (request, signal) => inference.rerank({ residency: {}, ...request }, signal),
    score: (request, signal) => inference.score({ residency: {}, ...request }, signal),
    tokenize: (request, signal) => inference.tokenize({ residency: {}, ...request }, signal),
    detokenize: (request, signal) => inference.detokenize({ residency: {}, ...request }, signal),
    pieces: (request, signal) => inference.pieces({ residency: {}, ...request }, signal),
    promptFromTokens: (request, signal) => inference.promptFromTokens({ residency: {}, ...request }, signal),
  };
}
