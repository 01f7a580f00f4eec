import { z } from "zod";
import { list, MAX_LIST_LENGTH, MAX_STOPS, MAX_TOKENS } from "../../http/input/bounded-lists.ts";
import {
  ignored,
  refused,
  repetitionGuardField,
  invalidField,
  modelField,
  optional,
} from "../../http/input/common-fields.ts";
import type { Inference, InferenceRequest } from "../../inference/inference.ts";
import { returnProgressField, timingsPerTokenField } from "../wire/answer-fields.ts";
import {
  choiceCount,
  constraintFields,
  engineFields,
  noThinkingFields,
  probabilitiesField,
  samplingFields,
  unsupportedFields,
} from "../wire/generation-fields.ts";
import { commonSettings, perChoice, toChoices, toStop } from "../request-settings.ts";
import { toSingleFormat } from "../structured-output.ts";

/** Maximum number of texts between token IDs in one prompt; each is tokenized separately. */
const MAX_TEXTS_PER_PROMPT = 1024;
/** Maximum number of selected fields; an answer has fewer. */
const MAX_RESPONSE_FIELDS = 64;
const MAX_FIELD_LENGTH = 256;

const tokenLimit = optional(
  z.union([z.int().min(0), z.literal(-1), z.literal(-2)]),
  "Maximum number of tokens to generate; 0: only process the prompt, to cache it; -1 and -2: until the context is full. Default: -1.",
);

/** Fields common to /completion and /infill. */
const generationFields = {
  model: modelField,
  n_predict: tokenLimit,
  max_tokens: tokenLimit.describe("Another name of n_predict."),
  max_completion_tokens: tokenLimit.describe("Another name of n_predict."),
  n_cmpl: optional(choiceCount, "Number of completions per prompt. Default: 1."),
  n: optional(choiceCount, "Another name of n_cmpl."),
  ...samplingFields,
  ...engineFields,
  ...unsupportedFields,
  ...noThinkingFields,
  ...constraintFields,
  stop: optional(
    z.union([z.string(), list(z.string(), { max: MAX_STOPS })]),
    "Stop sequences; they are not part of the content. Empty strings are ignored.",
  ),
  repetition_guard: repetitionGuardField,
  n_probs: probabilitiesField,
  logprobs: z
    .union([z.boolean(), probabilitiesField])
    .describe("Another name of n_probs; true means 1, false means 0."),
  image_data: refused("send images in messages of /v1/chat/completions"),
  stream: optional(z.boolean(), "Stream the content as server-sent events. Default: false."),
  return_tokens: optional(z.boolean(), "Return the token IDs. Default: false."),
  return_progress: returnProgressField,
  response_fields: optional(
    list(z.string().max(MAX_FIELD_LENGTH), { max: MAX_RESPONSE_FIELDS }),
    'Fields of the answer to return; a nested field is written "timings/prompt_n". Default: all.',
  ),
  timings_per_token: timingsPerTokenField,
  t_max_prompt_ms: ignored("llama.cpp's server ignores it too"),
  sse_ping_interval: ignored("pings are sent every 15 seconds"),
};

const generationObject = z.object(generationFields);
export type GenerationBody = z.output<typeof generationObject>;

/** Token IDs, or token IDs mixed with texts. */
const promptTokens = list(z.union([z.int(), z.string()]), { min: 1, max: MAX_TOKENS });
const promptObject = z.object({
  prompt_string: z.string(),
  multimodal_data: refused("send images and recordings in messages of /v1/chat/completions"),
});
const promptSchema = z.union([z.string(), promptObject, promptTokens]);
type WirePrompt = z.output<typeof promptSchema>;

/** POST /completion. Unknown fields are ignored. */
export const completionRequestSchema = z
  .object({
    prompt: z
      .union([z.string(), promptObject, promptTokens, list(promptSchema, { min: 1 })])
      .describe(
        "Text, token IDs, an array that mixes them, an object with prompt_string, or an array of several such prompts. Token IDs that do not result from tokenizing a text are refused.",
      ),
    ...generationFields,
  })
  .meta({ id: "LlamaServerCompletionRequest" });
type CompletionBody = z.output<typeof completionRequestSchema>;

/** Maximum number of other files in an infill request; editors send tens. */
const MAX_EXTRA_FILES = 1024;

/** POST /infill. Unknown fields are ignored. */
export const infillRequestSchema = z
  .object({
    input_prefix: z.string().describe("Text before the gap."),
    input_suffix: z.string().describe("Text after the gap."),
    input_extra: optional(
      list(
        z.object({
          text: z.string().nullish(),
          filename: z
            .string()
            .max(MAX_FIELD_LENGTH * 16)
            .nullish(),
        }),
        { max: MAX_EXTRA_FILES },
      ),
      "Parts of other files; the first ones are dropped if not all fit in the context.",
    ),
    prompt: optional(z.string(), "Start of the text in the gap."),
    ...generationFields,
  })
  .meta({ id: "LlamaServerInfillRequest" });

/** Returns the prompts of a request. An array is one prompt if it contains token IDs; otherwise each element is one. */
export function promptsOf({ prompt }: Pick<CompletionBody, "prompt">): readonly WirePrompt[] {
  if (!Array.isArray(prompt)) return [prompt];
  const hasTokenIds = prompt.some((item) => typeof item === "number");
  const mixed: (number | string)[] = [];
  const prompts: WirePrompt[] = [];
  for (const item of prompt) {
    if (hasTokenIds && (typeof item === "number" || typeof item === "string")) mixed.push(item);
    else if (typeof item !== "number") prompts.push(item);
  }
  checkCount("prompt", prompts.length, MAX_LIST_LENGTH);
  checkCount(
    "prompt",
    hasTokenIds ? mixed.filter((item) => typeof item === "string").length : 0,
    MAX_TEXTS_PER_PROMPT,
  );
  return hasTokenIds ? [mixed] : prompts;
}

function checkCount(param: string, count: number, most: number): void {
  if (count <= most) return;
  throw invalidField(param, `must have at most ${most} texts.`);
}

/** Maximum number of tokens to generate; undefined: until the context is full. */
export function tokenLimitOf(body: GenerationBody): number | undefined {
  const limit = body.n_predict ?? body.max_completion_tokens ?? body.max_tokens;
  return limit == null || limit < 0 ? undefined : limit;
}

/** Number of alternatives to report per token; undefined: no log probabilities. */
export function alternativesOf(body: GenerationBody): number | undefined {
  return Number(body.n_probs ?? body.logprobs ?? 0) || undefined;
}

/** Returns a request for each choice of each input, in the order of the inputs. */
export function toRequests(
  body: GenerationBody,
  inputs: readonly InferenceRequest["input"][],
): InferenceRequest[] {
  const limit = tokenLimitOf(body);
  const request: Omit<InferenceRequest, "input"> = {
    endpoint: "generate",
    ...commonSettings(body),
    isBuffered: !body.stream,
    // The engine generates at least one token; see isPromptOnly().
    ...(limit !== undefined && { maxTokens: Math.max(1, limit) }),
    stop: toStop(body.stop),
    format: toSingleFormat(body, { param: "format", format: { type: "text" } }),
    logprobs: alternativesOf(body) ?? (body.return_tokens ? 0 : undefined),
    // llama.cpp's server also returns tokens without text.
    ...(body.return_tokens && { emptyTokens: true }),
    details: true,
    timings: body.timings_per_token ?? false,
  };
  return inputs.flatMap((input) => perChoice({ ...request, input }, toChoices(body)));
}

/** True if a request only fills the KV cache. The engine still generates one token, which is not returned. */
export function isPromptOnly(body: GenerationBody): boolean {
  return tokenLimitOf(body) === 0;
}

/** Returns the text of a prompt. Token IDs become a text that the model tokenizes to exactly these IDs. */
export async function promptText(
  inference: Inference,
  model: string | undefined,
  prompt: WirePrompt,
  signal: AbortSignal,
): Promise<string> {
  if (typeof prompt === "string") return prompt;
  if (!Array.isArray(prompt)) return prompt.prompt_string;
  const tokens: number[] = [];
  for (const [at, item] of prompt.entries()) {
    if (typeof item === "number") tokens.push(item);
    else {
      const options = { addSpecial: at === 0, parseSpecial: true };
      for (const token of await inference.tokenize({ model, text: item, options }, signal))
        tokens.push(token);
    }
  }
  return await inference.promptFromTokens({ model, tokens, param: "prompt" }, signal);
}
