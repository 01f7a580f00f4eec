import { z } from "zod";
import { type AnswerLimit, limitField, limitFields } from "../../inference/answer-limit.ts";
import { finishReasonSchema, type ToolCall, type Usage } from "../../engine/protocol/generation.ts";

/** The last fields of an answer, streamed or not. */
export const summaryFields = {
  done_reason: finishReasonSchema.describe(
    "Why it ended: end of turn or a stop sequence, the token limit, or tool calls.",
  ),
  limited_by: limitField,
  total_duration_ms: z
    .int()
    .describe("Milliseconds from receiving the request to the end, queueing included."),
  prompt_tokens: z.int().describe("Tokens of the prompt, template included."),
  cached_tokens: z.int().describe("Prompt tokens reused from the KV cache."),
  completion_tokens: z.int().describe("Tokens generated."),
  draft_tokens: z
    .int()
    .optional()
    .describe("Tokens that were guessed in advance and checked; absent: none were."),
  draft_tokens_accepted: z.int().optional().describe("Of these, the ones that were right."),
  tokens_per_second: z.number().describe("Generation speed."),
};

/** More decimals of tokens_per_second would be noise. */
const RATE_DECIMALS = 2;

export function summary(end: {
  reason: "stop" | "length" | "tool_calls";
  limitedBy?: AnswerLimit | undefined;
  usage: Usage;
  totalMs: number;
  tokensPerSecond: number;
}) {
  return {
    done_reason: end.reason,
    ...limitFields(end),
    total_duration_ms: Math.round(end.totalMs),
    prompt_tokens: end.usage.promptTokens,
    cached_tokens: end.usage.cachedTokens,
    completion_tokens: end.usage.completionTokens,
    ...(end.usage.guesses && {
      draft_tokens: end.usage.guesses.tokens,
      draft_tokens_accepted: end.usage.guesses.kept,
    }),
    tokens_per_second: Number(end.tokensPerSecond.toFixed(RATE_DECIMALS)),
  };
}

export const wireToolCallSchema = z
  .object({
    id: z.string(),
    type: z.literal("function"),
    function: z.object({
      name: z.string(),
      arguments: z.string().describe("JSON text, exactly as the model wrote it."),
    }),
  })
  .meta({ id: "ToolCall" });
export type WireToolCall = z.output<typeof wireToolCallSchema>;

export function wireToolCall({ id, name, arguments: text }: ToolCall): WireToolCall {
  return { id, type: "function", function: { name, arguments: text } };
}
