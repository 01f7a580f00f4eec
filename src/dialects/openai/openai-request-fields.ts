import { z } from "zod";
import { list, MAX_STOPS } from "../../http/input/bounded-lists.ts";
import type { ContentPart, Sampling } from "../../engine/protocol/generation.ts";
import { ServiceError } from "../../errors/service-error.ts";
import { repetitionGuardField } from "../../http/input/repetition-guard-field.ts";
import { ignored, modelName } from "../../http/input/known-fields.ts";
import { engineFields } from "../engine-fields.ts";
import { foreignFields } from "../foreign-fields.ts";
import { returnProgressField } from "../prompt-progress.ts";
import type { StreamOptions } from "./openai-answer-fields.ts";
import { samplingFields } from "../sampling-fields.ts";
import { timingsPerTokenField } from "../timings.ts";

/** The API's own limit for one prompt. */
const MAX_CHOICES = 128;
export const choiceCount = z.int().min(1).max(MAX_CHOICES);

/** Fields that chat and text completions share. Null means the same as leaving a field out. */
export const commonFields = {
  model: modelName.nullish().describe("Model name. Default: the daemon's default model."),
  ...samplingFields,
  ...engineFields,
  timings_per_token: timingsPerTokenField,
  ...foreignFields,
  stop: z
    .union([z.string(), list(z.string(), { most: MAX_STOPS })])
    .nullish()
    .describe("Stop sequence, or several; they are not part of the answer. Empty strings are ignored."),
  n: choiceCount
    .nullish()
    .describe(
      `Number of choices, at most ${MAX_CHOICES}; those beyond the model's slots wait for one. Default: 1.`,
    ),
  n_cmpl: choiceCount.nullish().describe("llama.cpp's name of n."),
  stream: z.boolean().nullish().describe("Stream the answer as server-sent events. Default: false."),
  stream_options: z
    .object({ include_usage: z.boolean().nullish() })
    .nullish()
    .describe("include_usage: send the token counts at the end of the stream."),
  return_progress: returnProgressField,
  repetition_guard: repetitionGuardField,
  user: ignored(),
};

/** Some clients write "no limit" as -1. */
export const tokenLimit = z.union([z.int().min(1), z.literal(-1)]).nullish();

export function toMaxTokens(limit: z.output<typeof tokenLimit>): number | undefined {
  return limit == null || limit === -1 ? undefined : limit;
}

const commonSchema = z.object(commonFields);
type CommonFields = z.output<typeof commonSchema>;

export function toStreamOptions(body: CommonFields): StreamOptions {
  return {
    includeUsage: body.stream_options?.include_usage ?? false,
    returnProgress: body.return_progress ?? false,
    timingsPerToken: body.timings_per_token ?? false,
  };
}

export function toStop(stop: CommonFields["stop"]): readonly string[] | undefined {
  if (stop == null) return undefined;
  return [stop].flat().filter((text) => text !== "");
}

/** Choices of each prompt. */
export function toChoices(body: Pick<CommonFields, "n" | "n_cmpl">): number {
  return body.n_cmpl ?? body.n ?? 1;
}

/** Gives each choice its own seed, so that they differ. */
export function withChoice(sampling: Sampling, choice: number): Sampling {
  return sampling.seed === undefined ? sampling : { ...sampling, seed: (sampling.seed + choice) >>> 0 };
}

export function unsupported(message: string, param: string): ServiceError {
  return new ServiceError("unsupported_feature", message, { param });
}

/** The text of a message: a string, or parts of text and refusals. */
export function toTextContent(
  content: string | readonly ({ text: string } | { refusal: string })[] | null | undefined,
): ContentPart[] {
  if (content == null || content === "") return [];
  if (typeof content === "string") return [{ type: "text", text: content }];
  return content.map((part) => ({ type: "text", text: "text" in part ? part.text : part.refusal }));
}
