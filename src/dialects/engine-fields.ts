import { z } from "zod";
import {
  MAX_TOP_LOGPROBS,
  MOST_ADAPTER_SCALE,
  MOST_ADAPTERS,
  MOST_SHIFTED_TOKENS,
} from "../engine/protocol/generation.ts";
import { list } from "../http/input/bounded-lists.ts";
import { ignored } from "../http/input/known-fields.ts";
import type { InferenceRequest } from "../inference/inference.ts";

/** Names of adapters are parts of names of models. */
const MOST_NAME_LENGTH = 128;

export const adapterChoice = z
  .object({
    id: z.int().min(0).nullish().describe("Its number, from 0."),
    name: z.string().max(MOST_NAME_LENGTH).nullish().describe("Its name, in place of id."),
    scale: z
      .number()
      .min(-MOST_ADAPTER_SCALE)
      .max(MOST_ADAPTER_SCALE)
      .default(1)
      .describe("How strongly it works."),
  })
  .refine(({ id, name }) => (id == null) !== (name == null), { error: "must have either id or name" });

/** What llama.cpp's server takes besides sampling and formats, in every API that generates text. */
export const engineFields = {
  cache_prompt: z
    .boolean()
    .nullish()
    .describe("Reuse the part of the prompt that is in the KV cache. Default: true."),
  lora: list(adapterChoice, { most: MOST_ADAPTERS })
    .nullish()
    .describe(
      "LoRA adapters of the model that work on the answer, by id or name, with their scales; those that are not listed are off. Default: as its Modelfile says.",
    ),
  id_slot: z
    .int()
    .min(-1)
    .nullish()
    .describe(
      "The slot that answers, from 0; numbers beyond the last one begin again with the first. While it is busy, the request waits for it. Default, and -1: the one that has most of the prompt.",
    ),
  n_cache_reuse: z
    .int()
    .min(0)
    .max(MOST_SHIFTED_TOKENS)
    .nullish()
    .describe(
      "Least tokens of a part of the prompt that is taken from the KV cache although what precedes it has changed; 0: none is. More than 0 needs a model that was loaded with cache_reuse. Default: cache_reuse of the load.",
    ),
  n_keep: z
    .int()
    .min(-1)
    .max(MOST_SHIFTED_TOKENS)
    .nullish()
    .describe(
      "First tokens that stay when a context shifts that was loaded to do so; -1: the whole prompt. Default: num_keep of the load.",
    ),
  n_discard: z
    .int()
    .min(0)
    .max(MOST_SHIFTED_TOKENS)
    .nullish()
    .describe("Tokens that are dropped when it shifts. Default, and 0: half of those behind n_keep."),
  timings_per_token: ignored("the events of this API have no place for timings"),
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

export function toEngineFields(
  body: Partial<z.output<typeof engineObject>>,
): Pick<InferenceRequest, "cachePrompt" | "cacheReuse" | "adapters" | "shift" | "slot"> {
  const adapters = body.lora?.map(({ id, name, scale }) => ({
    id: id ?? undefined,
    name: name ?? undefined,
    scale,
  }));
  const { n_keep: keep, n_discard: discard, id_slot: slot } = body;
  const isShifted = keep != null || discard != null;
  return {
    cachePrompt: body.cache_prompt ?? undefined,
    ...(body.n_cache_reuse != null && { cacheReuse: body.n_cache_reuse }),
    ...(adapters && { adapters }),
    ...(slot != null && slot >= 0 && { slot }),
    ...(isShifted && { shift: { keep: keep ?? undefined, discard: discard ?? undefined } }),
  };
}
