import type { GenerationRequest } from "../../../src/engine/protocol/generation.ts";

/** Request for an exact number of tokens after a prompt that is not cached. */
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
