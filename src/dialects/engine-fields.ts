import { z } from "zod";
import { MAX_TOP_LOGPROBS } from "../engine/protocol/generation.ts";
import { ignored } from "../http/input/known-fields.ts";
import type { InferenceRequest } from "../inference/inference.ts";

/** What llama.cpp's server takes besides sampling and formats, in every API that generates text. */
export const engineFields = {
  cache_prompt: z
    .boolean()
    .nullish()
    .describe("Reuse the part of the prompt that is in the KV cache. Default: true."),
  id_slot: ignored("the daemon picks the slot, which does not change the answer"),
  n_cache_reuse: ignored("cache_reuse of the model says it"),
  n_keep: ignored("num_keep of the model says it"),
  n_discard: ignored("a context that shifts drops half of what it may"),
  backend_sampling: ignored("where tokens are chosen does not change the answer"),
};

/** llama.cpp's name of the alternatives that are reported with each token. */
export const probabilitiesField = z
  .int()
  .min(0)
  .max(MAX_TOP_LOGPROBS)
  .nullish()
  .describe("Report the log-probability of each token, and of so many alternatives; 0: none.");

const engineObject = z.object(engineFields);

export function toCachePrompt(
  body: Partial<z.output<typeof engineObject>>,
): Pick<InferenceRequest, "cachePrompt"> {
  return { cachePrompt: body.cache_prompt ?? undefined };
}
