import { z } from "zod";
import { dictionary, list, MAX_STOPS } from "../../http/input/bounded-lists.ts";
import { samplingSchema, type ContentPart, type Sampling } from "../../engine/protocol/generation.ts";
import { ServiceError } from "../../errors/service-error.ts";
import { ignored, modelName } from "../../http/input/known-fields.ts";
import { DEFAULT_SAMPLING, toSeed } from "../../inference/default-sampling.ts";

const range = samplingSchema.shape;

/** The API's own limit for one prompt. */
const MAX_CHOICES = 128;
export const choiceCount = z.int().min(1).max(MAX_CHOICES);

/** Fields that chat and text completions share. Null means the same as leaving a field out. */
export const commonFields = {
  model: modelName.nullish().describe("Model name. Default: the daemon's default model."),
  temperature: range.temperature
    .nullable()
    .describe(
      `Sampling temperature; 0 always picks the most likely token. Default: ${DEFAULT_SAMPLING.temperature}.`,
    ),
  top_p: range.topP.nullable().describe(`Nucleus sampling. Default: ${DEFAULT_SAMPLING.topP}.`),
  presence_penalty: range.presencePenalty
    .nullable()
    .describe("Penalty for tokens that have already occurred."),
  frequency_penalty: range.frequencyPenalty
    .nullable()
    .describe("Penalty that grows with how often a token has occurred."),
  top_k: z
    .union([range.topK, z.literal(-1)])
    .nullable()
    .describe(`Top-k sampling; 0 and -1 disable it. Default: ${DEFAULT_SAMPLING.topK}.`),
  min_p: range.minP.nullable().describe("Minimum token probability, relative to the most likely token."),
  repeat_penalty: range.repeatPenalty.nullable().describe("Penalty for repeated tokens; 1 disables it."),
  seed: z.int().nullish().describe("Sampling seed. Default, and -1: a new one for each request."),
  stop: z
    .union([z.string(), list(z.string(), { most: MAX_STOPS })])
    .nullish()
    .describe("Stop sequence, or several; they are not part of the answer. Empty strings are ignored."),
  logit_bias: dictionary(z.number().min(-100).max(100), z.string().regex(/^\d{1,10}$/, "must be a token ID"))
    .nullish()
    .describe("Bias by token ID, -100 to 100."),
  n: choiceCount
    .nullish()
    .describe(
      `Number of choices, at most ${MAX_CHOICES}; those beyond the model's slots wait for one. Default: 1.`,
    ),
  stream: z.boolean().nullish().describe("Stream the answer as server-sent events. Default: false."),
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

/** Gives each choice its own seed, so that they differ. */
export function withChoice(sampling: Sampling, choice: number): Sampling {
  return sampling.seed === undefined ? sampling : { ...sampling, seed: (sampling.seed + choice) >>> 0 };
}

export function unsupported(message: string, param: string): ServiceError {
  return new ServiceError("unsupported_feature", message, { param });
}

/** The efforts that clients send; each template supports some of them. */
export const reasoningEffortSchema = z.enum(["none", "minimal", "low", "medium", "high", "xhigh", "max"]);

/** "none" disables thinking; any other effort enables it on models that support it, and is passed to the template. */
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

/** The text of a message: a string, or parts of text and refusals. */
export function toTextContent(
  content: string | readonly ({ text: string } | { refusal: string })[] | null | undefined,
): ContentPart[] {
  if (content == null || content === "") return [];
  if (typeof content === "string") return [{ type: "text", text: content }];
  return content.map((part) => ({ type: "text", text: "text" in part ? part.text : part.refusal }));
}
