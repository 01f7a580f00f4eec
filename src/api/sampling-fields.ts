import { z } from "zod";
import {
  MAX_TOP_LOGPROBS,
  MAX_ADAPTER_SCALE,
  MAX_ADAPTERS,
  MAX_SHIFTED_TOKENS,
  type Sampling,
} from "../engine/protocol/generation.ts";
import {
  MAX_DRY_BREAKER_LENGTH,
  MAX_DRY_BREAKERS,
  SAMPLER_NAMES,
  SAMPLERS,
  SAMPLING_ENTRIES,
  type SamplingFields,
  type SamplingKey,
} from "../engine/protocol/sampling-fields.ts";
import { dictionary, list } from "../http/input/bounded-lists.ts";
import { ignored, refused } from "../http/input/common-fields.ts";
import { toSeed } from "../inference/default-sampling.ts";
import type { InferenceRequest } from "../inference/inference.ts";

const LETTERS = Object.values(SAMPLERS).join("");
const bias = z.union([z.number().min(-100).max(100), z.literal(false)]);

/** Settings that requests write in another way than the engine does. */
const wireTypes = {
  topK: z.int().min(-1).max(1_000_000),
  seed: z.int(),
  samplers: z.union([
    list(z.enum(SAMPLER_NAMES), { most: SAMPLER_NAMES.length }),
    z
      .string()
      .max(SAMPLER_NAMES.length)
      .regex(new RegExp(`^[${LETTERS}]*$`), `must consist of the letters ${LETTERS}`),
  ]),
  drySequenceBreakers: list(z.string().min(1).max(MAX_DRY_BREAKER_LENGTH), {
    least: 1,
    most: MAX_DRY_BREAKERS,
  }),
  logitBias: z.union([
    dictionary(bias, z.string().regex(/^\d{1,10}$/, "must be a token ID")),
    list(z.tuple([z.int().min(0), bias])),
  ]),
} as const satisfies Partial<Record<SamplingKey, z.ZodType>>;
type WireTypes = typeof wireTypes;

type WireType<Key extends SamplingKey> = Key extends keyof WireTypes
  ? WireTypes[Key]
  : SamplingFields[Key]["type"];
type NamesOf<Key extends SamplingKey> =
  | SamplingFields[Key]["name"]
  | (SamplingFields[Key] extends { aliases: readonly (infer Alias extends string)[] } ? Alias : never);
type SamplingShape = {
  [Key in SamplingKey as NamesOf<Key>]: z.ZodOptional<z.ZodNullable<WireType<Key>>>;
};

/** A setting's own name comes before its aliases. */
function namesOf([, { name, aliases = [] }]: (typeof SAMPLING_ENTRIES)[number]): readonly string[] {
  return [name, ...aliases];
}

/** All settings of sampling, as fields of a request. Null means the same as leaving one out. */
// The names and types are those of the table.
// oxlint-disable-next-line typescript/no-unsafe-type-assertion
export const samplingFields = Object.fromEntries(
  SAMPLING_ENTRIES.flatMap((entry) => {
    const [key, { name, type, description, default: value }] = entry;
    const byKey: Partial<Record<SamplingKey, z.ZodType>> = wireTypes;
    const field = (byKey[key] ?? type).nullish();
    const said = value === undefined ? description : `${description} Default: ${value}.`;
    return namesOf(entry).map((each) => [
      each,
      field.describe(each === name ? said : `Another name of ${name}.`),
    ]);
  }),
) as unknown as SamplingShape;

const samplingObject = z.object(samplingFields);
type SamplingBody = Partial<z.output<typeof samplingObject>>;

/** The settings of a request by the engine's keys; those that it leaves out are undefined. */
export function toSampling(body: SamplingBody): Sampling {
  const given: Readonly<Record<string, unknown>> = body;
  const plain = SAMPLING_ENTRIES.map((entry) => {
    const value = namesOf(entry)
      .map((name) => given[name])
      .find((each) => each != null);
    return [entry[0], value];
  });
  return {
    ...Object.fromEntries(plain),
    topK: body.top_k == null ? undefined : Math.max(0, body.top_k),
    seed: toSeed(body.seed),
    samplers: toSamplers(body.samplers),
    logitBias: toLogitBias(body.logit_bias),
  };
}

function toSamplers(samplers: SamplingBody["samplers"]): Sampling["samplers"] {
  if (typeof samplers !== "string") return samplers ?? undefined;
  return Array.from(samplers, (letter) => SAMPLER_NAMES.find((name) => SAMPLERS[name] === letter)).filter(
    (name) => name !== undefined,
  );
}

function toLogitBias(biases: SamplingBody["logit_bias"]): Sampling["logitBias"] {
  if (biases == null) return undefined;
  const pairs = Array.isArray(biases) ? biases : Object.entries(biases);
  return pairs.map(([token, value]) => ({ token: Number(token), bias: value === false ? BAN : value }));
}

/** Low enough that no other token is less likely. */
const BAN = -100;

/** Names of adapters are parts of names of models. */
const MAX_NAME_LENGTH = 128;

export const adapterChoice = z
  .object({
    id: z.int().min(0).nullish().describe("Its number, from 0."),
    name: z.string().max(MAX_NAME_LENGTH).nullish().describe("Its name, in place of id."),
    scale: z
      .number()
      .min(-MAX_ADAPTER_SCALE)
      .max(MAX_ADAPTER_SCALE)
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
  lora: list(adapterChoice, { most: MAX_ADAPTERS })
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
    .max(MAX_SHIFTED_TOKENS)
    .nullish()
    .describe(
      "Least tokens of a part of the prompt that is taken from the KV cache although what precedes it has changed; 0: none is. More than 0 needs a model that was loaded with cache_reuse. Default: cache_reuse of the load.",
    ),
  n_keep: z
    .int()
    .min(-1)
    .max(MAX_SHIFTED_TOKENS)
    .nullish()
    .describe(
      "First tokens that stay when a context shifts that was loaded to do so; -1: the whole prompt. Default: num_keep of the load.",
    ),
  n_discard: z
    .int()
    .min(0)
    .max(MAX_SHIFTED_TOKENS)
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

/**
 * Fields of llama.cpp's server, vLLM and their relatives that would change an answer and cannot be kept: they are
 * refused, so that nobody takes an answer for one that has them. Values that ask for nothing are accepted.
 */
export const foreignFields = {
  min_tokens: refused("an answer ends where the model ends it; say in the prompt how long it should be", 0),
  stop_token_ids: refused("send the texts of the tokens in stop"),
  include_stop_str_in_output: refused("an answer does not contain its stop sequence", false),
  bad_words: refused("give their tokens a logit_bias of -100; POST /tokenize tells them"),
  allowed_token_ids: refused("describe the answer with a grammar or a JSON schema"),
  logits_processors: refused("use logit_bias, a grammar or a JSON schema"),
  use_beam_search: refused("answers are sampled; send n for several", false),
  length_penalty: refused("it belongs to beam search", 1),
  prompt_logprobs: refused("POST /v1/completions reports them with echo and logprobs"),
  post_sampling_probs: refused("log-probabilities are those before sampling", false),
  skip_special_tokens: refused("special tokens are never part of the text", true),
  truncate_prompt_tokens: refused("prompts are not shortened; send one that fits"),
  chat_template: refused("a template belongs to the model; create one with TEMPLATE in its Modelfile"),
  documents: refused("put them in a message, or pass them to the template in chat_template_kwargs"),
  structural_tag: refused("use tools, or describe the whole answer with a grammar"),
  ebnf: refused("send it in grammar, as GBNF"),
  guided_whitespace_pattern: refused("describe the answer with a grammar"),
  grammar_lazy: refused("a grammar holds from the first token", false),
  reasoning_format: refused("reasoning is always apart from the text of an answer", "auto", "deepseek"),
  "speculative.n_min": refused("how few tokens are worth a step is learned; limit guesses with draft_max", 0),
  "speculative.p_min": refused(
    "how sure a draft model has to be is fixed; limit guesses with draft_max",
    0,
    0.75,
  ),
  reasoning_budget_message: refused("thinking that has used its budget ends without a message"),
  reasoning_budget_start_tag: refused("tags belong to the model; create one with THINKING in its Modelfile"),
  reasoning_budget_end_tag: refused("tags belong to the model; create one with THINKING in its Modelfile"),
  reasoning_budget_end_tags: refused("tags belong to the model; create one with THINKING in its Modelfile"),
  guided_decoding_backend: ignored("there is one"),
  spaces_between_special_tokens: ignored("special tokens are never part of the text"),
  request_id: ignored("send it in the header X-Request-Id"),
};
