import type { GenerationEvent, GenerationRequest } from "../../src/engine/protocol/generation.ts";
import { DONE } from "./fake-engine.ts";

/**
 * A script for the fake engine, whose tokens are bytes: where a grammar or a bias forces tokens it generates those, and
 * otherwise a text. The log-probability of a token is its negative id.
 */
export function forcedBytes(text: string) {
  return async function* (request: GenerationRequest): AsyncGenerator<GenerationEvent> {
    yield { type: "start" };
    for (const id of idsOf(request, text).slice(0, request.maxTokens)) {
      const token = String.fromCharCode(id);
      const score = { id, token, logprob: -id, bytes: [id] };
      yield { type: "text-delta", text: token, logprobs: [{ ...score, top: [score] }] };
    }
    yield DONE;
  };
}

function idsOf({ format, sampling }: GenerationRequest, text: string): number[] {
  if (format.type === "grammar")
    return [...format.grammar.matchAll(/<\[(\d+)\]>/g)].map(([, id]) => Number(id));
  return sampling.logitBias?.map(({ token }) => token) ?? [...Buffer.from(text)];
}
