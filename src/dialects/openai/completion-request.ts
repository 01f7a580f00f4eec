import { z } from "zod";
import { list, tokenList } from "../../http/input/bounded-lists.ts";
import { MAX_TOP_LOGPROBS } from "../../engine/protocol/generation.ts";
import { ServiceError } from "../../errors/service-error.ts";
import { DEFAULT_SAMPLING } from "../../inference/default-sampling.ts";
import type { InferenceRequest } from "../../inference/inference.ts";
import { noThinkingFields } from "../thinking-fields.ts";
import { probabilitiesField, toEngineFields } from "../engine-fields.ts";
import { toSampling } from "../sampling-fields.ts";
import {
  choiceCount,
  commonFields,
  toChoices,
  tokenLimit,
  toMaxTokens,
  toStop,
  withChoice,
} from "./openai-request-fields.ts";
import { formatFields, toOutputFormat } from "./output-format.ts";

/** The API's default. */
const DEFAULT_MAX_TOKENS = 16;

/** POST /v1/completions. Unknown fields are ignored. */
export const completionRequestSchema = z
  .object({
    ...commonFields,
    ...noThinkingFields,
    prompt: z
      .union([
        z.string(),
        list(z.string(), { least: 1 }),
        tokenList({ least: 1 }),
        list(tokenList({ least: 1 }), { least: 1 }),
      ])
      .describe(
        "One prompt or several, each as text or token IDs. Token IDs that do not come from text are refused.",
      ),
    max_tokens: z
      .union([tokenLimit, z.literal(0)])
      .describe(
        `Maximum number of tokens to generate; -1: until the context is full; 0, with echo: none. Default: ${DEFAULT_MAX_TOKENS}.`,
      ),
    logprobs: z
      .int()
      .min(0)
      .max(MAX_TOP_LOGPROBS)
      .nullish()
      .describe("Number of alternatives to return for each token."),
    n_predict: tokenLimit.describe("llama.cpp's name of max_tokens."),
    max_completion_tokens: tokenLimit.describe("Another name of max_tokens."),
    n_probs: probabilitiesField,
    echo: z
      .boolean()
      .nullish()
      .describe(
        "Return the prompt before the text; with logprobs, also the log probabilities of its tokens.",
      ),
    suffix: z
      .string()
      .nullish()
      .describe("Text after the completion; requires a model that supports fill-in-the-middle."),
    best_of: choiceCount
      .nullish()
      .describe(
        "Generate this many completions, at least n, and return the n most likely ones. Not with stream. Default: n.",
      ),
    ...formatFields,
  })
  .meta({ id: "CompletionRequest" });
export type CompletionRequest = z.output<typeof completionRequestSchema>;

/** Each prompt as the client sent it. */
export function promptItems({ prompt }: CompletionRequest): readonly (string | number[])[] {
  if (typeof prompt === "string") return [prompt];
  const prompts: (string | number[])[] = [];
  const whole: number[] = [];
  for (const item of prompt) {
    if (typeof item === "number") whole.push(item);
    else prompts.push(item);
  }
  return whole.length > 0 ? [whole] : prompts;
}

/** Completions of each prompt; the best `n` of them are returned. */
function generatedChoices(body: Pick<CompletionRequest, "n" | "n_cmpl" | "best_of">): number {
  return body.best_of ?? toChoices(body);
}

/** What the answer begins with needs the tokens of the prompts: their log-probabilities, or their number. */
export function needsPromptTokens(body: CompletionRequest): boolean {
  return body.echo === true && (requestedAlternatives(body) !== undefined || body.max_tokens === 0);
}

/** Alternatives to report for each token; undefined: no log-probabilities. */
export function requestedAlternatives({
  logprobs,
  n_probs: probabilities,
}: Pick<CompletionRequest, "logprobs" | "n_probs">): number | undefined {
  return logprobs ?? (probabilities || undefined);
}

/** {@link generatedChoices} for each prompt, in the order of the prompts; none when there are no tokens to generate. */
export function toCompletionRequests(
  body: CompletionRequest,
  prompts: readonly string[],
): InferenceRequest[] {
  if (body.max_tokens === 0) return [];
  const choices = generatedChoices(body);
  const isRanked = choices > toChoices(body);
  const sampling = toSampling(body);
  const alternatives = requestedAlternatives(body);
  const limit = body.max_tokens ?? body.max_completion_tokens ?? body.n_predict;
  const format = toOutputFormat(body);
  return prompts.flatMap((prompt) =>
    Array.from({ length: choices }, (_, choice): InferenceRequest => ({
      endpoint: "generate",
      model: body.model ?? undefined,
      isWhole: !body.stream,
      input: body.suffix
        ? { kind: "infill", prefix: prompt, suffix: body.suffix }
        : { kind: "prompt", prompt },
      maxTokens: toMaxTokens(limit),
      stop: toStop(body.stop),
      sampling: withChoice(sampling, choice),
      format,
      logprobs: alternatives ?? (isRanked ? 0 : undefined),
      ...toEngineFields(body),
      timings: body.timings_per_token ?? false,
      // Harnesses that score a prompt take the last entry away, which is that of the one token they ask for.
      ...(needsPromptTokens(body) && { emptyTokens: true }),
      repetitionGuard: body.repetition_guard ?? undefined,
      defaults: {
        ...(limit !== -1 && { maxTokens: DEFAULT_MAX_TOKENS }),
        sampling: DEFAULT_SAMPLING,
      },
    })),
  );
}

/** @throws ServiceError invalid_parameter for fields that exclude each other */
export function checkCombinations(body: CompletionRequest): void {
  const { max_tokens: maxTokens, best_of: best, echo, suffix } = body;
  if (maxTokens === 0 && !echo) refuse("max_tokens", "must be at least 1, or the request must have echo");
  if (suffix && needsPromptTokens(body)) refuse("suffix", "cannot be combined with echo and logprobs");
  if (best == null) return;
  if (best < toChoices(body)) refuse("best_of", "must be at least n");
  if (best > toChoices(body) && body.stream) {
    refuse("best_of", "cannot be streamed: completions are compared when they are complete");
  }
}

function refuse(param: string, what: string): never {
  throw new ServiceError("invalid_parameter", `${param}: ${what}.`, { param });
}
