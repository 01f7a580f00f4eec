import type { TokenIds } from "../../engine/protocol/calls.ts";
import type { Sampling } from "../../engine/protocol/generation.ts";
import { SAMPLING_ENTRIES } from "../../engine/protocol/sampling-fields.ts";
import type { AppContext } from "../../http/app-env.ts";
import { defineRoute, type Route } from "../../http/route.ts";
import { SSE_TYPE, streamResponse } from "../../http/streaming/stream-response.ts";
import { collectChoices, generateChoices } from "../../inference/generate-choices.ts";
import type { Inference, InferenceRequest } from "../../inference/inference.ts";
import type { InfillFile, InfillParts } from "../../inference/infill-prompt.ts";
import type { Model } from "../../models/model.ts";
import type { Services } from "../services.ts";
import {
  completionChunkSchema,
  completionSchema,
  type CompletionOptions,
  toCompletion,
  toCompletionChunks,
} from "./completion-answer.ts";
import {
  alternativesOf,
  completionRequestSchema,
  type GenerationBody,
  infillRequestSchema,
  isPromptOnly,
  promptsOf,
  promptText,
  tokenLimitOf,
  toRequests,
} from "./completion-request.ts";
import { llamaServerEvents, requiredModel } from "./llama-server-error.ts";

const tag = "llama-server";
const answers = [
  { description: "The completion, or an array of completions.", schema: completionSchema },
  { contentType: SSE_TYPE, description: "With stream: the chunks.", schema: completionChunkSchema },
];

/** POST /completion or /completions. */
export function completionRoute(services: Services, path: "/completion" | "/completions"): Route {
  const { inference } = services;
  return defineRoute({
    method: "POST",
    path,
    tag,
    summary: "Continue a text",
    description: "The prompt is sent to the model without its chat template. Unknown fields are ignored.",
    body: completionRequestSchema,
    answers,
    async handle(context, { body }) {
      const { signal } = context.req.raw;
      const model = body.model ?? undefined;
      const inputs: InferenceRequest["input"][] = [];
      for (const prompt of promptsOf(body)) {
        inputs.push({ kind: "prompt", prompt: await promptText(inference, model, prompt, signal) });
      }
      return await completionResponse(context, services, body, inputs);
    },
  });
}

/** POST /infill. */
export function infillRoute(services: Services): Route {
  const { inference, models } = services;
  return defineRoute({
    method: "POST",
    path: "/infill",
    tag,
    summary: "Fill a gap in a text",
    description:
      "For code editors. Requires a model trained for fill-in-the-middle. Text that does not fit in the context is shortened. Unknown fields are ignored.",
    body: infillRequestSchema,
    answers,
    async handle(context, { body }) {
      const { input_prefix: prefix, input_suffix: suffix, input_extra: files, prompt } = body;
      const model = await requiredModel(models, body.model);
      const extra = (files ?? []).map(({ text, filename }) => ({
        text: text ?? "",
        filename: filename || "tmp",
      }));
      const parts = { prefix, suffix, extra, middle: prompt ?? undefined };
      const { signal } = context.req.raw;
      const shortened = await shortenInfill(parts, model, tokenLimitOf(body), inference, signal);
      return await completionResponse(context, services, body, [{ kind: "infill", ...shortened }]);
    },
  });
}

async function completionResponse(
  context: AppContext,
  { inference, config }: Services,
  body: GenerationBody,
  inputs: readonly InferenceRequest["input"][],
): Promise<Response> {
  const requests = toRequests(body, inputs);
  const stream = body.stream ?? false;
  const { signal } = context.req.raw;
  const { model, events, warnings, sampling } = await generateChoices(
    inference,
    requests,
    config.models.slots,
    signal,
  );
  context.set("warnings", warnings);
  const limit = tokenLimitOf(body);
  const options: CompletionOptions = {
    model,
    settings: generationSettings(sampling, { limit, stop: requests[0]?.stop ?? [], stream }),
    tokens: body.return_tokens ?? false,
    probabilities: alternativesOf(body) !== undefined,
    progress: body.return_progress ?? false,
    promptOnly: isPromptOnly(body),
    fields: body.response_fields ?? undefined,
  };
  if (stream) return streamResponse(context, toCompletionChunks(events, options), llamaServerEvents);
  const completions = (await collectChoices(events, requests.length)).map((each, index) =>
    toCompletion(each, index, options),
  );
  return context.json(completions.length === 1 ? completions[0] : completions);
}

/** Share of the prompt's budget for the text before the gap, as in llama.cpp; the rest is for the text after it. */
const PREFIX_SHARE = 3 / 4;
/** Share of the context for the answer if the request does not limit it. */
const ANSWER_SHARE = 1 / 4;
/** Tokens reserved for the separators between the parts of the prompt. */
const MARKER_TOKENS = 16;
/** Tokens reserved for the separators around a file name. */
const FILE_TOKENS = 4;

/**
 * Assumed maximum length of a token. Text beyond the context size times this number cannot fit, and is not tokenized,
 * because that would block the engine's other requests.
 */
const MAX_TOKEN_CHARACTERS = 64;

/**
 * Shortens an infill request to the context that remains beside the answer, as llama.cpp's server does. Keeps the end
 * of the text before the gap, the start of the text after it, and the last of the other files.
 * @param limit maximum number of tokens of the answer
 */
async function shortenInfill(
  { prefix, suffix, extra = [], middle = "" }: InfillParts,
  { alias, contextSize }: Model,
  limit: number | undefined,
  inference: Inference,
  signal: AbortSignal,
): Promise<InfillParts> {
  const encode = async (text: string): Promise<TokenIds> =>
    await inference.tokenize(
      { model: alias, text, options: { addSpecial: false, parseSpecial: false } },
      signal,
    );
  const decode = async (tokens: TokenIds): Promise<string> =>
    await inference.detokenize({ model: alias, tokens }, signal);
  const answer = Math.min(limit ?? contextSize * ANSWER_SHARE, contextSize * (1 - ANSWER_SHARE));
  const maxCharacters = contextSize * MAX_TOKEN_CHARACTERS;
  const [prefixEnd, suffixStart] = [prefix.slice(-maxCharacters), suffix.slice(0, maxCharacters)];
  const [prefixTokens, suffixTokens, middleTokens] = await Promise.all([
    encode(prefixEnd),
    encode(suffixStart),
    encode(middle.slice(-maxCharacters)),
  ]);
  let budget = Math.floor(contextSize - answer) - MARKER_TOKENS - middleTokens.length;
  const maxPrefix = Math.max(0, Math.floor(Math.max(budget * PREFIX_SHARE, budget - suffixTokens.length)));
  const prefixCount = Math.min(prefixTokens.length, maxPrefix);
  const suffixCount = Math.min(suffixTokens.length, Math.max(0, budget - prefixCount));
  budget -= prefixCount + suffixCount;
  const fittingFiles: InfillFile[] = [];
  for (const file of extra.toReversed()) {
    if (file.text.length > maxCharacters) break;
    const [text, name] = await Promise.all([encode(file.text), encode(file.filename)]);
    budget -= text.length + name.length + FILE_TOKENS;
    if (budget < 0) break;
    fittingFiles.unshift(file);
  }
  return {
    prefix:
      prefixCount < prefixTokens.length
        ? await decode(prefixTokens.subarray(prefixTokens.length - prefixCount))
        : prefixEnd,
    suffix:
      suffixCount < suffixTokens.length
        ? withoutAddedBlank(suffixStart, await decode(suffixTokens.subarray(0, suffixCount)))
        : suffixStart,
    extra: fittingFiles,
    middle,
  };
}

/** Removes a leading blank that the original lacks: some tokenizers add it to every text, and would add another. */
function withoutAddedBlank(original: string, text: string): string {
  return text.startsWith(" ") && !original.startsWith(" ") ? text.slice(1) : text;
}

/** Defaults of llama.cpp's server. */
const LLAMA_CPP_DEFAULTS = {
  min_p: 0.05,
  typical_p: 1,
  top_n_sigma: -1,
  repeat_penalty: 1,
  repeat_last_n: 64,
  presence_penalty: 0,
  frequency_penalty: 0,
  dry_multiplier: 0,
  dry_base: 1.75,
  dry_allowed_length: 2,
  dry_penalty_last_n: -1,
  dry_sequence_breakers: ["\n", ":", '"', "*"],
  xtc_probability: 0,
  xtc_threshold: 0.1,
  dynatemp_range: 0,
  dynatemp_exponent: 1,
  mirostat: 0,
  mirostat_tau: 5,
  mirostat_eta: 0.1,
  adaptive_target: -1,
  adaptive_decay: 0.9,
  min_keep: 0,
  samplers: ["penalties", "dry", "top_n_sigma", "top_k", "typ_p", "top_p", "min_p", "xtc", "temperature"],
  /** Random seed for each request. */
  seed: 0xffff_ffff,
  logit_bias: [],
  ignore_eos: false,
  t_max_predict_ms: 0,
  n_indent: 0,
} as const;

/** Returns the settings of an answer under llama.cpp's names. */
export function generationSettings(
  sampling: Sampling,
  { limit, stop, stream }: { limit: number | undefined; stop: readonly string[]; stream: boolean },
): Record<string, unknown> {
  const inEffect = SAMPLING_ENTRIES.map(([key, { name }]) => [name, sampling[key]]);
  const defined = Object.fromEntries(inEffect.filter(([, value]) => value !== undefined));
  return {
    ...LLAMA_CPP_DEFAULTS,
    ...defined,
    n_predict: limit ?? -1,
    max_tokens: limit ?? -1,
    n_keep: 0,
    n_discard: 0,
    stop,
    stream,
  };
}
