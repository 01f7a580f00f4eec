import { z } from "zod";
import type { GenerationEvent, Sampling } from "../engine/protocol/generation.ts";

export const answerLimitSchema = z.enum([
  "max_tokens",
  "num_predict",
  "default",
  "context",
  "repetition",
  "time",
  "indentation",
]);
/** What ended an answer before its end. */
export type AnswerLimit = z.output<typeof answerLimitSchema>;

/** For the end of an answer, beside the API's own reason, which is the same for all limits. */
export const limitField = answerLimitSchema
  .optional()
  .describe(
    "Of an answer that was cut off: which limit that was. max_tokens: the request's; num_predict: the model's PARAMETER; default: this API's; context: the context is full; repetition: it ran in circles (repetition_guard); time: t_max_predict_ms; indentation: n_indent.",
  );

/** The field of {@link limitField}, where an answer was cut off. */
export function limitFields({ limitedBy }: { readonly limitedBy?: AnswerLimit | undefined }): {
  limited_by?: AnswerLimit;
} {
  return limitedBy === undefined ? {} : { limited_by: limitedBy };
}

type DoneEvent = Extract<GenerationEvent, { type: "done" }>;

/** The limit of tokens of an answer, and who has set it. */
export interface TokenLimit {
  readonly tokens: number;
  readonly setBy: Extract<AnswerLimit, "max_tokens" | "num_predict" | "default">;
}

/** Which limit an answer has reached; undefined if it ended by itself. */
export function answerLimit(
  { reason, usage, timings }: Pick<DoneEvent, "reason" | "usage" | "timings">,
  limit: TokenLimit | undefined,
  { maxPredictMs, minIndent }: Pick<Sampling, "maxPredictMs" | "minIndent">,
): AnswerLimit | undefined {
  if (reason !== "length") return undefined;
  if (limit && usage.completionTokens >= limit.tokens) return limit.setBy;
  if (maxPredictMs && timings.completionMs >= maxPredictMs) return "time";
  return minIndent ? "indentation" : "context";
}
