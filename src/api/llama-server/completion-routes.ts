import type { TokenIds } from "../../engine/protocol/calls.ts";
import type { Sampling } from "../../engine/protocol/generation.ts";
import { SAMPLING_ENTRIES } from "../../engine/protocol/sampling-fields.ts";
import type { AppContext } from "../../http/app-env.ts";
import { addWarnings } from "../../http/middleware/answer-warnings.ts";
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
  type CompletionStyle,
  toCompletion,
  toCompletionChunks,
} from "./completion-answer.ts";
import {
  alternativesOf,
  completionRequestSchema,
  type GenerationBody,
  infillRequestSchema,
  isOnlyRead,
  promptsOf,
  promptText,
  tokenLimitOf,
  toRequests,
} from "./completion-request.ts";
import { llamaServerEvents, requiredModel } from "./llama-server-error.ts";

const tag = "llama-server";
const answers = [
  { description: "The completion; an array of them for several.", schema: completionSchema },
  { contentType: SSE_TYPE, description: "With stream: the chunks.", schema: completionChunkSchema },
];

/** POST /completion, and by its other name. */
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
      return await completionRoutesAnswer(context, services, body, inputs);
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
      "For editors, and models that were trained for it. What does not fit into the context is shortened. Unknown fields are ignored.",
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
      const fitting = await fitInfill(parts, model, tokenLimitOf(body), inference, signal);
      return await completionRoutesAnswer(context, services, body, [{ kind: "infill", ...fitting }]);
    },
  });
}

async function completionRoutesAnswer(
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
  addWarnings(context, warnings);
  const limit = tokenLimitOf(body);
  const style: CompletionStyle = {
    model,
    settings: generationSettings(sampling, { limit, stop: requests[0]?.stop ?? [], stream }),
    tokens: body.return_tokens ?? false,
    probabilities: alternativesOf(body) !== undefined,
    progress: body.return_progress ?? false,
    onlyRead: isOnlyRead(body),
    fields: body.response_fields ?? undefined,
  };
  if (stream) return streamResponse(context, toCompletionChunks(events, style), llamaServerEvents);
  const completions = (await collectChoices(events, requests.length)).map((each, index) =>
    toCompletion(each, index, style),
  );
  return context.json(completions.length === 1 ? completions[0] : completions);
}

/** Share of the context for the text before a gap, as in llama.cpp; the rest of both is for the text after it. */
const PREFIX_SHARE = 3 / 4;
/** Share of the context for the answer when the request does not limit it. */
const ANSWER_SHARE = 1 / 4;
/** For the tokens between the parts of the prompt. */
const MARKER_TOKENS = 16;
/** For those around the name of a file. */
const FILE_TOKENS = 4;

/** Hardly any token is longer: what is beyond is not even tokenized, which would keep the engine from its other requests. */
const MAX_CHARACTERS = 64;

/** What is needed to count tokens, and to cut a text between them. */
type Tokens = Pick<Inference, "tokenize" | "detokenize">;

/**
 * Shortens what an editor sends to what the context holds beside the answer, as llama.cpp's server does: of the text before
 * the gap the end is kept, of the text after it the beginning, and of the other files the last ones.
 * @param limit tokens of the answer
 */
async function fitInfill(
  { prefix, suffix, extra = [], middle = "" }: InfillParts,
  { alias, contextSize }: Pick<Model, "alias" | "contextSize">,
  limit: number | undefined,
  inference: Tokens,
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
  const most = contextSize * MAX_CHARACTERS;
  const [near, next] = [prefix.slice(-most), suffix.slice(0, most)];
  const [before, after, begun] = await Promise.all([encode(near), encode(next), encode(middle.slice(-most))]);
  let room = Math.floor(contextSize - answer) - MARKER_TOKENS - begun.length;
  const mostBefore = Math.max(0, Math.floor(Math.max(room * PREFIX_SHARE, room - after.length)));
  const keptBefore = Math.min(before.length, mostBefore);
  const keptAfter = Math.min(after.length, Math.max(0, room - keptBefore));
  room -= keptBefore + keptAfter;
  const kept: InfillFile[] = [];
  for (const file of extra.toReversed()) {
    if (file.text.length > most) break;
    const [text, name] = await Promise.all([encode(file.text), encode(file.filename)]);
    room -= text.length + name.length + FILE_TOKENS;
    if (room < 0) break;
    kept.unshift(file);
  }
  return {
    prefix: keptBefore < before.length ? await decode(before.subarray(before.length - keptBefore)) : near,
    suffix: keptAfter < after.length ? begunAs(next, await decode(after.subarray(0, keptAfter))) : next,
    extra: kept,
    middle,
  };
}

/** Some tokenizers put a blank in front of every text, and would do so again. */
function begunAs(original: string, text: string): string {
  return text.startsWith(" ") && !original.startsWith(" ") ? text.slice(1) : text;
}

/** What llama.cpp does where nobody says otherwise. */
const DEFAULTS = {
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
  /** A new one for each request. */
  seed: 0xffff_ffff,
  logit_bias: [],
  ignore_eos: false,
  t_max_predict_ms: 0,
  n_indent: 0,
} as const;

/** The settings of an answer, by llama.cpp's names. */
export function generationSettings(
  sampling: Sampling,
  { limit, stop, stream }: { limit: number | undefined; stop: readonly string[]; stream: boolean },
): Record<string, unknown> {
  const inEffect = SAMPLING_ENTRIES.map(([key, { name }]) => [name, sampling[key]]);
  const given = Object.fromEntries(inEffect.filter(([, value]) => value !== undefined));
  return {
    ...DEFAULTS,
    ...given,
    n_predict: limit ?? -1,
    max_tokens: limit ?? -1,
    n_keep: 0,
    n_discard: 0,
    stop,
    stream,
  };
}
