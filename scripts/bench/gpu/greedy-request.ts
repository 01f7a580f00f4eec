import type { GenerationRequest } from "../../../src/engine/protocol/generation.ts";

/** A request for an exact number of tokens after a prompt that is not in a cache. */
export function greedyRequest(prompt: string, tokens: number): GenerationRequest {
  return {
    input: { kind: "prompt", prompt },
    maxTokens: tokens,
    stop: [],
    sampling: { temperature: 0, ignoreEos: true },
    format: { type: "text" },
    cachePrompt: false,
  };
}
