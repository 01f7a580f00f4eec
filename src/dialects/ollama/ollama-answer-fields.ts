import { z } from "zod";
import type { FinishReason, Timings, TokenLogprob, Usage } from "../../engine/protocol/generation.ts";

const NS_PER_MS = 1e6;

/** This API counts time in whole nanoseconds. */
export function nanoseconds(milliseconds: number): number {
  return Math.round(milliseconds * NS_PER_MS);
}

/** The fields with which a generation ends, whole or streamed. */
export const summaryFields = {
  done_reason: z
    .enum(["stop", "length"])
    .describe("A turn that ends with tool calls has ended by itself: stop."),
  total_duration: z.int().describe("Nanoseconds from the request's arrival to its end, waiting included."),
  load_duration: z.int().describe("Nanoseconds until the model was in memory."),
  prompt_eval_count: z.int().describe("Tokens of the prompt, template included."),
  prompt_eval_duration: z.int().describe("Nanoseconds spent on the prompt."),
  eval_count: z.int().describe("Tokens generated."),
  eval_duration: z.int().describe("Nanoseconds spent on generating."),
};

export interface End {
  readonly reason: FinishReason;
  readonly usage: Usage;
  readonly timings: Timings;
  readonly totalMs: number;
}

export function summary({ reason, usage, timings, totalMs }: End, loadMs: number) {
  return {
    done_reason: reason === "length" ? ("length" as const) : ("stop" as const),
    total_duration: nanoseconds(totalMs),
    load_duration: nanoseconds(loadMs),
    prompt_eval_count: usage.promptTokens,
    prompt_eval_duration: nanoseconds(timings.promptMs),
    eval_count: usage.completionTokens,
    eval_duration: nanoseconds(timings.completionMs),
  };
}

const tokenFields = { token: z.string(), logprob: z.number(), bytes: z.array(z.int()).nullable() };
export const logprobsField = z
  .array(z.object({ ...tokenFields, top_logprobs: z.array(z.object(tokenFields)) }))
  .optional()
  .describe("Of the tokens of this piece, when asked for.");

/** As fields of an answer or a line; none when there are no log-probabilities. */
export function logprobFields(logprobs: readonly TokenLogprob[] | undefined): {
  logprobs?: z.output<typeof logprobsField>;
} {
  if (!logprobs || logprobs.length === 0) return {};
  return { logprobs: logprobs.map(({ top, ...token }) => ({ ...token, top_logprobs: top })) };
}

/** How the answer is labeled: the model by the name the client used, and the clock. */
export interface Label {
  readonly model: string;
  readonly loadMs: number;
  readonly now: () => Date;
}

export const labelFields = {
  model: z.string().describe("The name in the request."),
  created_at: z.string().describe("ISO 8601."),
};

export function labeled({ model, now }: Pick<Label, "model" | "now">) {
  return { model, created_at: now().toISOString() };
}

/** The answer to a request that only loads or unloads. */
export const residencyReasonField = z.enum(["load", "unload"]);
export type ResidencyReason = z.output<typeof residencyReasonField>;
