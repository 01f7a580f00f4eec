import type { z } from "zod";
import type { Sampling } from "../engine/protocol/generation.ts";
import { SAMPLER_NAMES, SAMPLERS, SAMPLING_ENTRIES } from "../engine/protocol/sampling-fields.ts";
import { DEFAULT_SAMPLING, toSeed } from "../inference/default-sampling.ts";
import type { InferenceRequest } from "../inference/inference.ts";
import {
  type engineFields,
  type reasoningEffortSchema,
  type samplingFields,
  samplingNames,
  type templateThinkingFields,
  type thinkingFields,
  type thinkSchema,
} from "./wire/generation-fields.ts";

type SamplingBody = Partial<z.output<z.ZodObject<typeof samplingFields>>>;

/** Returns the settings of a request by the engine's keys; absent ones are undefined. */
export function toSampling(body: SamplingBody): Sampling {
  const fields: Readonly<Record<string, unknown>> = body;
  const values = SAMPLING_ENTRIES.map((entry) => {
    const value = samplingNames(entry)
      .map((name) => fields[name])
      .find((each) => each != null);
    return [entry[0], value];
  });
  return {
    ...Object.fromEntries(values),
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
  return pairs.map(([token, value]) => ({
    token: Number(token),
    bias: value === false ? BANNED_BIAS : value,
  }));
}

/** Logit bias that excludes a token in practice. */
const BANNED_BIAS = -100;

/** Returns the settings that requests of most APIs have in common. */
export function commonSettings(
  body: SamplingBody &
    EngineBody & { model?: string | null | undefined; repetition_guard?: boolean | null | undefined },
) {
  return {
    model: body.model ?? undefined,
    sampling: toSampling(body),
    ...toEngineFields(body),
    repetitionGuard: body.repetition_guard ?? undefined,
    defaults: { sampling: DEFAULT_SAMPLING },
  };
}

/** Number of choices per prompt. */
export function toChoices(body: {
  readonly n?: number | null | undefined;
  readonly n_cmpl?: number | null | undefined;
}): number {
  return body.n_cmpl ?? body.n ?? 1;
}

/** Returns a request for each choice. Each has a different seed; otherwise all would be equal. */
export function perChoice(request: InferenceRequest, choices: number): InferenceRequest[] {
  const { sampling } = request;
  return Array.from({ length: choices }, (_, choice) => ({
    ...request,
    sampling: sampling.seed === undefined ? sampling : { ...sampling, seed: (sampling.seed + choice) >>> 0 },
  }));
}

/** Converts stop sequences. Some clients send an empty string for "none", which would match immediately. */
export function toStop(stop: string | readonly string[] | null | undefined): string[] | undefined {
  return stop == null ? undefined : [stop].flat().filter((text) => text !== "");
}

type EngineBody = Partial<z.output<z.ZodObject<typeof engineFields>>>;

function toEngineFields(
  body: EngineBody,
): Pick<InferenceRequest, "cachePrompt" | "cacheReuse" | "adapters" | "shift" | "slot"> {
  const adapters = body.lora?.map(({ id, name, scale }) => ({
    id: id ?? undefined,
    name: name ?? undefined,
    scale,
  }));
  const { n_keep: keep, n_discard: discard, id_slot: slot } = body;
  const setsShift = keep != null || discard != null;
  return {
    cachePrompt: body.cache_prompt ?? undefined,
    ...(body.n_cache_reuse != null && { cacheReuse: body.n_cache_reuse }),
    ...(adapters && { adapters }),
    ...(slot != null && slot >= 0 && { slot }),
    ...(setsShift && { shift: { keep: keep ?? undefined, discard: discard ?? undefined } }),
  };
}

/**
 * Converts Ollama's `think`. A level becomes reasoning_effort; for templates without it, a limit of thinking tokens.
 */
export function thinkingFromLevel(think: z.output<typeof thinkSchema>): {
  thinking?: boolean;
  templateVariables?: Record<string, unknown>;
} {
  if (think == null) return {};
  return typeof think === "string"
    ? { thinking: true, templateVariables: { reasoning_effort: think } }
    : { thinking: think };
}

/** Requested limit of thinking tokens. */
export function toReasoningBudget(body: Partial<z.output<z.ZodObject<typeof thinkingFields>>>): {
  reasoningBudget?: number;
} {
  const requested =
    body.thinking_budget_tokens ?? body.thinking_token_budget ?? body.reasoning_budget_tokens ?? -1;
  return requested < 0 ? {} : { reasoningBudget: requested };
}

/** Converts {@link templateThinkingFields}. */
export function thinkingFromTemplateFields({
  reasoning_effort: effort,
  enable_thinking: thinking,
  chat_template_kwargs: variables,
}: z.output<z.ZodObject<typeof templateThinkingFields>>): ReturnType<typeof thinkingFromEffort> {
  return thinkingFromEffort(
    effort,
    thinking == null ? variables : { enable_thinking: thinking, ...variables },
  );
}

/**
 * Converts an effort: "none" disables thinking; any other enables it where supported, and is passed to the template.
 */
export function thinkingFromEffort(
  effort: z.output<typeof reasoningEffortSchema> | null | undefined,
  variables?: Readonly<Record<string, unknown>> | null,
): { thinking?: boolean; templateVariables?: Record<string, unknown> } {
  const enable = variables?.["enable_thinking"];
  const thinking = effort === "none" ? false : typeof enable === "boolean" ? enable : undefined;
  const merged = { ...variables, ...(effort != null && effort !== "none" && { reasoning_effort: effort }) };
  return {
    ...(thinking !== undefined && { thinking }),
    ...(Object.keys(merged).length > 0 && { templateVariables: merged }),
  };
}
