import type { GenerationRequest } from "../../../src/engine/protocol/generation.ts";

/** Asks for so many tokens behind a prompt that is read anew each time, whatever the model would rather say. */
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
