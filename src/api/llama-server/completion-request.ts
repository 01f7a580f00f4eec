import { z } from "zod";
import { ServiceError } from "../../errors/service-error.ts";
import { list, MAX_LIST_LENGTH, MAX_STOPS, MAX_TOKENS } from "../../http/input/bounded-lists.ts";
import { ignored, modelName, refused, repetitionGuardField } from "../../http/input/common-fields.ts";
import { DEFAULT_SAMPLING } from "../../inference/default-sampling.ts";
import type { Inference, InferenceRequest } from "../../inference/inference.ts";
import { returnProgressField, timingsPerTokenField } from "../progress-fields.ts";
import { noThinkingFields } from "../reasoning-fields.ts";
import {
  engineFields,
  foreignFields,
  probabilitiesField,
  samplingFields,
  toEngineFields,
  toSampling,
} from "../sampling-fields.ts";
import { constraintFields, toConstraint } from "../structured-output-fields.ts";

/** Texts between the token ids of one prompt: each is tokenized by itself. */
const MAX_TEXTS = 1024;
/** As in the OpenAI API. */
const MAX_CHOICES = 128;
/** More than an answer has fields. */
const MAX_RESPONSE_FIELDS = 64;
const MAX_FIELD_LENGTH = 256;

export const modelField = modelName.nullish().describe("Model name. Default: the daemon's default model.");

const tokenLimit = z
  .union([z.int().min(0), z.literal(-1), z.literal(-2)])
  .nullish()
  .describe(
    "Maximum number of tokens to generate; 0: only read the prompt, for the cache; -1 and -2: until the context is full. Default: -1.",
  );

/** Fields that /completion and /infill share. */
const generationFields = {
  model: modelField,
  n_predict: tokenLimit,
  max_tokens: tokenLimit.describe("Another name of n_predict."),
  max_completion_tokens: tokenLimit.describe("Another name of n_predict."),
  n_cmpl: z.int().min(1).max(MAX_CHOICES).nullish().describe("Completions of each prompt. Default: 1."),
  n: z.int().min(1).max(MAX_CHOICES).nullish().describe("Another name of n_cmpl."),
  ...samplingFields,
  ...engineFields,
  ...foreignFields,
  ...noThinkingFields,
  ...constraintFields,
  stop: z
    .union([z.string(), list(z.string(), { most: MAX_STOPS })])
    .nullish()
    .describe("Stop sequences; they are not part of the content. Empty strings are ignored."),
  repetition_guard: repetitionGuardField,
  n_probs: probabilitiesField,
  logprobs: z
    .union([z.boolean(), probabilitiesField])
    .describe("Another name of n_probs; true stands for 1, and false for 0."),
  image_data: refused("send images in messages of /v1/chat/completions"),
  stream: z.boolean().nullish().describe("Stream the content as server-sent events. Default: false."),
  return_tokens: z.boolean().nullish().describe("Return the ids of the tokens. Default: false."),
  return_progress: returnProgressField,
  response_fields: list(z.string().max(MAX_FIELD_LENGTH), { most: MAX_RESPONSE_FIELDS })
    .nullish()
    .describe('Fields of the answer to return, nested ones as "timings/prompt_n". Default: all.'),
  timings_per_token: timingsPerTokenField,
  t_max_prompt_ms: ignored("llama.cpp's server ignores it, too"),
  sse_ping_interval: ignored("pings are sent every 15 seconds"),
};

const generationObject = z.object(generationFields);
export type GenerationBody = z.output<typeof generationObject>;

/** Text, token ids, both in turn, or an object with the text. */
const completionSchemaTokens = list(z.union([z.int(), z.string()]), { least: 1, most: MAX_TOKENS });
const withMedia = z.object({
  prompt_string: z.string(),
  multimodal_data: refused("send images and recordings in messages of /v1/chat/completions"),
});
const completionSchemaPrompt = z.union([z.string(), withMedia, completionSchemaTokens]);
type WirePrompt = z.output<typeof completionSchemaPrompt>;

/** POST /completion. Unknown fields are ignored. */
export const completionRequestSchema = z
  .object({
    prompt: z
      .union([z.string(), withMedia, completionSchemaTokens, list(completionSchemaPrompt, { least: 1 })])
      .describe(
        "Text, token ids, an array that mixes them, an object with prompt_string, or an array of several such prompts. Token ids that do not come from text are refused.",
      ),
    ...generationFields,
  })
  .meta({ id: "LlamaServerCompletionRequest" });
type CompletionBody = z.output<typeof completionRequestSchema>;

/** Most other files of a request to fill in; editors send tens. */
const MAX_EXTRA = 1024;

/** POST /infill. Unknown fields are ignored. */
export const infillRequestSchema = z
  .object({
    input_prefix: z.string().describe("The text before the gap."),
    input_suffix: z.string().describe("The text after the gap."),
    input_extra: list(
      z.object({
        text: z.string().nullish(),
        filename: z
          .string()
          .max(MAX_FIELD_LENGTH * 16)
          .nullish(),
      }),
      { most: MAX_EXTRA },
    )
      .nullish()
      .describe(
        "Parts of other files; the first ones are left out if the context does not hold all of them.",
      ),
    prompt: z.string().nullish().describe("What the text in the gap begins with."),
    ...generationFields,
  })
  .meta({ id: "LlamaServerInfillRequest" });

/** The prompts of a request. An array is one prompt if token ids are in it, else one for each element. */
export function promptsOf({ prompt: given }: Pick<CompletionBody, "prompt">): readonly WirePrompt[] {
  if (!Array.isArray(given)) return [given];
  const isOne = given.some((item) => typeof item === "number");
  const whole: (number | string)[] = [];
  const several: WirePrompt[] = [];
  for (const item of given) {
    if (isOne && (typeof item === "number" || typeof item === "string")) whole.push(item);
    else if (typeof item !== "number") several.push(item);
  }
  checkCount("prompt", several.length, MAX_LIST_LENGTH);
  checkCount("prompt", isOne ? whole.filter((item) => typeof item === "string").length : 0, MAX_TEXTS);
  return isOne ? [whole] : several;
}

function checkCount(param: string, count: number, most: number): void {
  if (count <= most) return;
  throw new ServiceError("invalid_parameter", `${param}: must have at most ${most} texts.`, { param });
}

/** Tokens to generate; undefined: until the context is full. */
export function tokenLimitOf(body: GenerationBody): number | undefined {
  const limit = body.n_predict ?? body.max_completion_tokens ?? body.max_tokens;
  return limit == null || limit < 0 ? undefined : limit;
}

/** Completions of each prompt. */
function choicesOf(body: GenerationBody): number {
  return body.n_cmpl ?? body.n ?? 1;
}

/** Alternatives of each token that the answer tells; undefined: none, and no log-probabilities. */
export function alternativesOf(body: GenerationBody): number | undefined {
  return Number(body.n_probs ?? body.logprobs ?? 0) || undefined;
}

/** A request for each choice of each input, in the order of the inputs. */
export function toRequests(
  body: GenerationBody,
  inputs: readonly InferenceRequest["input"][],
): InferenceRequest[] {
  const sampling = toSampling(body);
  const limit = tokenLimitOf(body);
  const request = {
    endpoint: "generate",
    model: body.model ?? undefined,
    isWhole: !body.stream,
    // The engine generates one at least; see isOnlyRead().
    ...(limit !== undefined && { maxTokens: Math.max(1, limit) }),
    stop: body.stop == null ? undefined : [body.stop].flat().filter((text) => text !== ""),
    format: toConstraint(body, { param: "format", format: { type: "text" } }),
    logprobs: alternativesOf(body) ?? (body.return_tokens ? 0 : undefined),
    // llama.cpp's server counts those without text among the tokens, too.
    ...(body.return_tokens && { emptyTokens: true }),
    ...toEngineFields(body),
    details: true,
    timings: body.timings_per_token ?? false,
    repetitionGuard: body.repetition_guard ?? undefined,
    defaults: { sampling: DEFAULT_SAMPLING },
  } as const satisfies Omit<InferenceRequest, "input" | "sampling">;
  return inputs.flatMap((input) =>
    Array.from({ length: choicesOf(body) }, (_, choice) => ({
      ...request,
      input,
      // Each choice has a seed of its own, or they would all be the same.
      sampling:
        sampling.seed === undefined ? sampling : { ...sampling, seed: (sampling.seed + choice) >>> 0 },
    })),
  );
}

/** Whether a request wants no text: its prompt is read for the cache, and the one token that comes is dropped. */
export function isOnlyRead(body: GenerationBody): boolean {
  return tokenLimitOf(body) === 0;
}

/** The text of a prompt: token ids become one that the model tokenizes to exactly these. */
export async function promptText(
  inference: Pick<Inference, "tokenize" | "promptFromTokens">,
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
