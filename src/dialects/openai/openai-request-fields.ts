import { z } from "zod";
import { dictionary, list, MAX_STOPS } from "../../http/input/list.ts";
import { samplingSchema, type Sampling } from "../../engine/protocol/generation.ts";
import { ServiceError } from "../../errors/service-error.ts";
import { ignored, modelName } from "../../http/input/known-fields.ts";
import { DEFAULT_SAMPLING, toSeed } from "../../inference/default-sampling.ts";

const range = samplingSchema.shape;

/** What chat and text completions have in common. For all of them null means the same as leaving them out. */
export const commonFields = {
  model: modelName.nullish().describe("Name of the model. Default: the daemon's default model."),
  temperature: range.temperature
    .nullable()
    .describe(
      `Sampling temperature; 0 always takes the likeliest token. Default: ${DEFAULT_SAMPLING.temperature}.`,
    ),
  top_p: range.topP.nullable().describe(`Nucleus sampling. Default: ${DEFAULT_SAMPLING.topP}.`),
  presence_penalty: range.presencePenalty.nullable().describe("Penalty for tokens that occurred before."),
  frequency_penalty: range.frequencyPenalty.nullable().describe("Penalty by how often a token occurred."),
  top_k: z
    .union([range.topK, z.literal(-1)])
    .nullable()
    .describe(`Top-k sampling; 0 and -1 switch it off. Default: ${DEFAULT_SAMPLING.topK}.`),
  min_p: range.minP.nullable().describe("Least probability relative to the likeliest token."),
  repeat_penalty: range.repeatPenalty.nullable().describe("Penalty for repeated tokens; 1 is none."),
  seed: z.int().nullish().describe("Makes sampling repeatable; -1 and absent mean another one each time."),
  stop: z
    .union([z.string(), list(z.string(), { most: MAX_STOPS })])
    .nullish()
    .describe("Text, or texts, at which to stop; they are not part of the answer. Empty ones count as none."),
  logit_bias: dictionary(z.number().min(-100).max(100), z.string().regex(/^\d{1,10}$/, "must be a token id"))
    .nullish()
    .describe("Bias by token id, -100 to 100."),
  n: z.int().min(1).nullish().describe("How many answers, up to the number of slots of a model. Default: 1."),
  stream: z.boolean().nullish().describe("Answer by server-sent events. Default: false."),
  stream_options: z
    .object({ include_usage: z.boolean().nullish() })
    .nullish()
    .describe("include_usage: send the token counts at the end of the stream."),
  user: ignored(),
};

/** Some clients write "no limit" as -1. */
export const tokenLimit = z.union([z.int().min(1), z.literal(-1)]).nullish();

export function toMaxTokens(limit: z.output<typeof tokenLimit>): number | undefined {
  return limit == null || limit === -1 ? undefined : limit;
}

const commonSchema = z.object(commonFields);
type CommonFields = z.output<typeof commonSchema>;

export function toSampling(body: CommonFields): Sampling {
  return {
    temperature: body.temperature ?? undefined,
    topP: body.top_p ?? undefined,
    topK: body.top_k == null ? undefined : Math.max(0, body.top_k),
    minP: body.min_p ?? undefined,
    repeatPenalty: body.repeat_penalty ?? undefined,
    presencePenalty: body.presence_penalty ?? undefined,
    frequencyPenalty: body.frequency_penalty ?? undefined,
    seed: toSeed(body.seed),
    logitBias: body.logit_bias
      ? Object.entries(body.logit_bias).map(([token, bias]) => ({ token: Number(token), bias }))
      : undefined,
  };
}

export function toStop(stop: CommonFields["stop"]): readonly string[] | undefined {
  if (stop == null) return undefined;
  return [stop].flat().filter((text) => text !== "");
}

/** Each further choice has a seed of its own, or all would be the same. */
export function withChoice(sampling: Sampling, choice: number): Sampling {
  return sampling.seed === undefined ? sampling : { ...sampling, seed: (sampling.seed + choice) >>> 0 };
}

/** @throws ServiceError invalid_parameter when more answers are asked for than one model can work on at once */
export function checkChoices(count: number, slots: number): void {
  if (count <= slots) return;
  throw new ServiceError("invalid_parameter", `n: at most ${slots} answers at once, the slots of a model.`, {
    param: "n",
  });
}

export function unsupported(message: string, param: string): ServiceError {
  return new ServiceError("unsupported_feature", message, { param });
}

/** What clients may ask for; a template knows some of them. */
export const reasoningEffortSchema = z.enum(["none", "minimal", "low", "medium", "high", "xhigh", "max"]);

/** An effort lets a model think, "none" forbids it, and a template that knows the word gets it. */
export function toThinking(
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
