import { DEFAULT_SAMPLING } from "../../inference/default-sampling.ts";
import type { Inference, InferenceRequest } from "../../inference/inference.ts";
import { toConstraint } from "../constraint-fields.ts";
import { toEngineFields } from "../engine-fields.ts";
import { toSampling } from "../sampling-fields.ts";
import type { GenerationBody, WirePrompt } from "./completion-schema.ts";

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
