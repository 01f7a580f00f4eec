import { z } from "zod";
import {
  jsonSchemaSchema,
  MAX_TOP_LOGPROBS,
  MAX_ADAPTER_SCALE,
  MAX_ADAPTERS,
  MAX_SHIFTED_TOKENS,
} from "../../engine/protocol/generation.ts";
import {
  MAX_DRY_BREAKER_LENGTH,
  MAX_DRY_BREAKERS,
  SAMPLER_NAMES,
  SAMPLERS,
  SAMPLING_ENTRIES,
  type SamplingFields,
  type SamplingKey,
} from "../../engine/protocol/sampling-fields.ts";
import { dictionary, list } from "../../http/input/bounded-lists.ts";
import { ignored, refused, optional } from "../../http/input/common-fields.ts";

const LETTERS = Object.values(SAMPLERS).join("");
const biasSchema = z.union([z.number().min(-100).max(100), z.literal(false)]);

/** Schemas of settings whose format in requests differs from the engine's. */
const wireTypes = {
  topK: z.int().min(-1).max(1_000_000),
  seed: z.int(),
  samplers: z.union([
    list(z.enum(SAMPLER_NAMES), { max: SAMPLER_NAMES.length }),
    z
      .string()
      .max(SAMPLER_NAMES.length)
      .regex(new RegExp(`^[${LETTERS}]*$`), `must consist of the letters ${LETTERS}`),
  ]),
  drySequenceBreakers: list(z.string().min(1).max(MAX_DRY_BREAKER_LENGTH), {
    min: 1,
    max: MAX_DRY_BREAKERS,
  }),
  logitBias: z.union([
    dictionary(biasSchema, z.string().regex(/^\d{1,10}$/, "must be a token ID")),
    list(z.tuple([z.int().min(0), biasSchema])),
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

/** Names of a setting in order of precedence: its own name, then its aliases. */
export function samplingNames([
  ,
  { name, aliases = [] },
]: (typeof SAMPLING_ENTRIES)[number]): readonly string[] {
  return [name, ...aliases];
}

/** Request fields of all sampling settings. Null means the same as absent. */
// Object.fromEntries loses the names and types of SAMPLING_ENTRIES.
// oxlint-disable-next-line typescript/no-unsafe-type-assertion
export const samplingFields = Object.fromEntries(
  SAMPLING_ENTRIES.flatMap((entry) => {
    const [key, { name, type, description, default: value }] = entry;
    const byKey: Partial<Record<SamplingKey, z.ZodType>> = wireTypes;
    const field = (byKey[key] ?? type).nullish();
    const described = value === undefined ? description : `${description} Default: ${value}.`;
    return samplingNames(entry).map((each) => [
      each,
      field.describe(each === name ? described : `Another name of ${name}.`),
    ]);
  }),
) as unknown as SamplingShape;

/** Maximum length of an adapter's name, which becomes part of a model name. */
const MAX_NAME_LENGTH = 128;

export const adapterChoiceSchema = z
  .object({
    id: optional(z.int().min(0), "Index of the adapter, from 0."),
    name: optional(z.string().max(MAX_NAME_LENGTH), "Name of the adapter, instead of id."),
    scale: z
      .number()
      .min(-MAX_ADAPTER_SCALE)
      .max(MAX_ADAPTER_SCALE)
      .default(1)
      .describe("Strength of the adapter."),
  })
  .refine(({ id, name }) => (id == null) !== (name == null), { error: "must have either id or name" });

/** Fields of llama.cpp's server other than sampling and formats, accepted in every API that generates text. */
export const engineFields = {
  cache_prompt: optional(
    z.boolean(),
    "Reuse the prefix of the prompt that is in the KV cache. Default: true.",
  ),
  lora: optional(
    list(adapterChoiceSchema, { max: MAX_ADAPTERS }),
    "LoRA adapters to apply, by id or name, with their scales; adapters not listed are off. Default: those of the Modelfile.",
  ),
  id_slot: optional(
    z.int().min(-1),
    "Slot to use, from 0, modulo the number of slots. While it is busy, the request waits for it. Default, and -1: the slot that has the longest prefix of the prompt.",
  ),
  n_cache_reuse: optional(
    z.int().min(0).max(MAX_SHIFTED_TOKENS),
    "Minimum length in tokens of a part of the prompt that is reused from the KV cache by shifting it, although the text before it has changed; 0: no reuse. A value above 0 requires a model loaded with cache_reuse. Default: cache_reuse of the load.",
  ),
  n_keep: optional(
    z.int().min(-1).max(MAX_SHIFTED_TOKENS),
    "Number of initial tokens to keep at a context shift, if the model was loaded with context_shift; -1: the whole prompt. Default: num_keep of the load.",
  ),
  n_discard: optional(
    z.int().min(0).max(MAX_SHIFTED_TOKENS),
    "Tokens to drop at a context shift. Default, and 0: half of those after n_keep.",
  ),
  timings_per_token: ignored("the events of this API have no place for timings"),
  backend_sampling: ignored("sampling on the GPU or the CPU gives the same answer"),
};

/** Maximum number of choices per prompt, as in OpenAI's API. */
export const MAX_CHOICES = 128;
export const choiceCount = z.int().min(1).max(MAX_CHOICES);

/** Field `n_probs` of llama.cpp's server: how many alternatives to report with each token. */
export const probabilitiesField = optional(
  z.int().min(0).max(MAX_TOP_LOGPROBS),
  "Report the log probability of each token and of this many alternatives; 0: none.",
);

/**
 * Fields of llama.cpp's server, vLLM and similar servers that are not supported. Fields that would change the answer
 * are refused, so that a client never takes an answer for one that honors them. Values without an effect are accepted.
 */
export const unsupportedFields = {
  min_tokens: refused("an answer ends where the model ends it; say in the prompt how long it should be", 0),
  stop_token_ids: refused("send the texts of the tokens in stop"),
  include_stop_str_in_output: refused("an answer does not contain its stop sequence", false),
  bad_words: refused("set a logit_bias of -100 for their tokens, which POST /tokenize returns"),
  allowed_token_ids: refused("describe the answer with a grammar or a JSON schema"),
  logits_processors: refused("use logit_bias, a grammar or a JSON schema"),
  use_beam_search: refused("answers are sampled; send n for several", false),
  length_penalty: refused("it only applies to beam search", 1),
  prompt_logprobs: refused("POST /v1/completions reports them with echo and logprobs"),
  post_sampling_probs: refused("log-probabilities are those before sampling", false),
  skip_special_tokens: refused("special tokens are never part of the text", true),
  truncate_prompt_tokens: refused("prompts are not shortened; send one that fits"),
  chat_template: refused("a template belongs to the model; create one with TEMPLATE in its Modelfile"),
  documents: refused("put them in a message, or pass them to the template in chat_template_kwargs"),
  structural_tag: refused("use tools, or describe the whole answer with a grammar"),
  ebnf: refused("send it in grammar, as GBNF"),
  guided_whitespace_pattern: refused("describe the answer with a grammar"),
  grammar_lazy: refused("a grammar applies from the first token", false),
  reasoning_format: refused("reasoning is always apart from the text of an answer", "auto", "deepseek"),
  "speculative.n_min": refused(
    "the minimum draft length is chosen automatically; limit drafts with draft_max",
    0,
  ),
  "speculative.p_min": refused(
    "the minimum draft probability is fixed; limit drafts with draft_max",
    0,
    0.75,
  ),
  reasoning_budget_message: refused("thinking ends without a message when its budget is used up"),
  reasoning_budget_start_tag: refused("tags belong to the model; create one with THINKING in its Modelfile"),
  reasoning_budget_end_tag: refused("tags belong to the model; create one with THINKING in its Modelfile"),
  reasoning_budget_end_tags: refused("tags belong to the model; create one with THINKING in its Modelfile"),
  guided_decoding_backend: ignored("there is only one backend"),
  spaces_between_special_tokens: ignored("special tokens are never part of the text"),
  request_id: ignored("send it in the header X-Request-Id"),
};

/** Upper bound for validation: more tokens than any context has. */
const MAX_THINKING_TOKENS = 16 * 1024 * 1024;

const budget = z.int().min(-1).max(MAX_THINKING_TOKENS).nullish();

/** Limit of thinking, under the names of llama.cpp's server and vLLM. For every API with thinking. */
export const thinkingFields = {
  thinking_budget_tokens: budget.describe(
    "Maximum number of thinking tokens; then the model must answer. A value above 0 enables thinking on models that support it; -1: no limit.",
  ),
  thinking_token_budget: budget.describe("Another name of thinking_budget_tokens."),
  reasoning_budget_tokens: budget.describe("Another name of thinking_budget_tokens."),
};

/** The same fields for APIs that continue a text, where thinking is not separate from the answer. */
export const noThinkingFields = {
  thinking_budget_tokens: refused("limit thinking and answer together with max_tokens", -1),
  thinking_token_budget: refused("limit thinking and answer together with max_tokens"),
  reasoning_budget_tokens: refused("limit thinking and answer together with max_tokens", -1),
};

/** Ollama's `think` field: enables thinking, or sets its level. */
export const thinkSchema = z.union([z.boolean(), z.enum(["low", "medium", "high", "max"])]).nullish();

/** Efforts that clients send; each chat template supports some of them. */
export const reasoningEffortSchema = z.enum(["none", "minimal", "low", "medium", "high", "xhigh", "max"]);

/** Fields for the chat template that enable thinking and set its effort. */
export const templateThinkingFields = {
  reasoning_effort: optional(
    reasoningEffortSchema,
    "Enables thinking on models that support it. Passed to the chat template; for a template without levels, it limits thinking to 256 tokens (minimal), 1024 (low), 4096 (medium) or 16384 (high), and to four fifths of the maximum answer. Default: none.",
  ),
  chat_template_kwargs: optional(
    dictionary(z.unknown()),
    "More variables for the chat template, such as enable_thinking.",
  ),
  enable_thinking: optional(z.boolean(), "Same as in chat_template_kwargs, which takes precedence."),
};

const schemaOrText = z.union([jsonSchemaSchema, z.string()]);
const regex = z.string().min(1);
const choice = list(z.string(), { min: 1 });
const nonEmptyText = z.string().min(1);

/** vLLM's structured_outputs: an object with one of these fields. */
const structuredOutputs = z.object({
  json: schemaOrText.nullish(),
  regex: regex.nullish(),
  choice: choice.nullish(),
  grammar: nonEmptyText.nullish(),
  json_object: z.boolean().nullish(),
  structural_tag: refused("use tools, or describe the whole answer with a grammar"),
  whitespace_pattern: refused("describe the answer with a grammar"),
  disable_any_whitespace: refused("describe the answer with a grammar", false),
  disable_additional_properties: refused("set additionalProperties in the schema", false),
});

/** Structured-output fields of llama.cpp's server, vLLM and SGLang, accepted in every API that generates text. */
export const constraintFields = {
  json_schema: optional(jsonSchemaSchema, "JSON Schema of the answer."),
  grammar: optional(
    z.string(),
    "Grammar of the answer in llama.cpp's GBNF. Cannot be combined with another format or with tools.",
  ),
  regex: optional(
    regex,
    "Regular expression that the whole answer must match. Cannot be combined with another format or with tools.",
  ),
  guided_json: optional(schemaOrText, "vLLM's name of json_schema; may also be JSON text."),
  guided_regex: optional(regex, "vLLM's name of regex."),
  guided_choice: optional(choice, "Allowed answers. Cannot be combined with tools."),
  guided_grammar: optional(
    nonEmptyText,
    "Grammar of the answer in GBNF, where names may have underscores, or in Lark. Cannot be combined with tools.",
  ),
  structured_outputs: optional(
    structuredOutputs,
    "vLLM's newer form of the guided_ fields: an object with json, regex, choice, grammar or json_object.",
  ),
};

/** Function that the model may call. */
export const functionSchema = z.object({
  name: z.string().min(1).describe("Function name."),
  description: optional(z.string(), "Description for the model."),
  parameters: optional(jsonSchemaSchema, "JSON Schema of the arguments."),
});

/** Function tool in the APIs that nest the function. */
export const functionToolSchema = z.object({
  type: z.literal("function").default("function"),
  function: functionSchema,
});

export const strictField = optional(
  z.boolean(),
  "Refuse a schema that cannot be enforced completely, instead of enforcing parts of it.",
);
