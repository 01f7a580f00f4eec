import { z } from "zod";
import {
  type Figures,
  finishReasonSchema,
  type TokenLogprob,
  type ToolCall,
  type Usage,
} from "../../engine/protocol/generation.ts";
import {
  type AnswerLimit,
  type AnswerFailovers,
  limitField,
  limitFields,
} from "../../inference/inference.ts";

/** Token counts and speed. */
const statisticsFields = {
  prompt_tokens: z.int().describe("Tokens in the prompt, chat template included."),
  cached_tokens: z.int().describe("Prompt tokens reused from the KV cache."),
  completion_tokens: z.int().describe("Tokens generated."),
  draft_tokens: z.int().optional().describe("Draft tokens of speculative decoding; absent: none."),
  draft_tokens_accepted: z.int().optional().describe("Draft tokens that were accepted."),
  tokens_per_second: z.number().describe("Decode speed."),
};

/** Token counts and speed of the answer so far, in each chunk with timings_per_token. */
export const deltaStatisticsFields = z.object(statisticsFields).partial().shape;

/** Final fields of an answer, streamed or not. */
export const summaryFields = {
  done_reason: finishReasonSchema.describe(
    "Reason for the end: stop (end of turn or a stop sequence), length (token limit) or tool_calls.",
  ),
  limited_by: limitField,
  total_duration_ms: z
    .int()
    .describe("Milliseconds from the receipt of the request to the end, including the time in the queue."),
  moved: z
    .object({
      times: z.int().describe("Number of failovers to another machine."),
      other_tokens: z
        .int()
        .describe(
          "Tokens already sent for which the next machine would have chosen others; 0: the text is the same as from a single machine.",
        ),
    })
    .optional()
    .describe("In a fleet: the answering machine failed, and others continued the answer."),
  ...statisticsFields,
};

/** Decimals of tokens_per_second; more would be noise. */
const RATE_DECIMALS = 2;

export function summary(end: {
  reason: "stop" | "length" | "tool_calls";
  limitedBy?: AnswerLimit | undefined;
  moved?: AnswerFailovers | undefined;
  usage: Usage;
  totalMs: number;
  tokensPerSecond: number;
}) {
  return {
    done_reason: end.reason,
    ...limitFields(end),
    ...(end.moved && { moved: { times: end.moved.times, other_tokens: end.moved.otherTokens } }),
    total_duration_ms: Math.round(end.totalMs),
    ...toStatistics(end.usage, end.tokensPerSecond),
  };
}

function toStatistics(
  { promptTokens, cachedTokens, completionTokens, guesses }: Usage,
  tokensPerSecond: number,
) {
  return {
    prompt_tokens: promptTokens,
    cached_tokens: cachedTokens,
    completion_tokens: completionTokens,
    ...(guesses && { draft_tokens: guesses.tokens, draft_tokens_accepted: guesses.kept }),
    tokens_per_second: Number(tokensPerSecond.toFixed(RATE_DECIMALS)),
  };
}

/** Returns {@link deltaStatisticsFields}, if the engine reported them. */
export function deltaStatistics({ soFar }: { readonly soFar?: Figures | undefined }) {
  if (!soFar) return {};
  const { usage, timings } = soFar;
  // As in the final statistics: the first token is computed with the prompt.
  const milliseconds = timings.completionMs + (usage.completionTokens > 1 ? 0 : timings.promptMs);
  return toStatistics(usage, milliseconds > 0 ? (1000 * usage.completionTokens) / milliseconds : 0);
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
type WireToolCall = z.output<typeof wireToolCallSchema>;

export function wireToolCall({ id, name, arguments: text }: ToolCall): WireToolCall {
  return { id, type: "function", function: { name, arguments: text } };
}

const tokenProperties = {
  id: z.int().describe("ID of the token in the model's vocabulary."),
  token: z.string().describe("Text of the token."),
  bytes: z.array(z.int()).optional().describe("Bytes of the token, if they are not valid UTF-8."),
  logprob: z.number().describe("Natural logarithm of the probability before sampling."),
};

export const answerTokenSchema = z
  .object({
    ...tokenProperties,
    top: z.array(z.object(tokenProperties)).describe("Most likely tokens at this position."),
  })
  .meta({ id: "AnswerToken" });
/** Token of an answer in the daemon's own API. */
export type AnswerToken = z.output<typeof answerTokenSchema>;

const ENCODER = new TextEncoder();

/** Field of answers and chunks. */
export const logprobsField = {
  logprobs: z
    .array(answerTokenSchema)
    .optional()
    .describe("Tokens of the text, if the request has logprobs."),
};

/** Returns {@link logprobsField}, if there are any tokens. */
export function tokenFields(logprobs: readonly TokenLogprob[] | undefined): { logprobs?: AnswerToken[] } {
  return logprobs && logprobs.length > 0 ? { logprobs: logprobs.map(toAnswerToken) } : {};
}

export function toAnswerToken({ top, ...token }: TokenLogprob): AnswerToken {
  return { ...tokenWithBytes(token), top: top.map(tokenWithBytes) };
}

/** Converts a token. Omits the bytes of valid text, which follow from the text. */
function tokenWithBytes({ id, token, bytes, logprob }: Omit<TokenLogprob, "top">): Omit<AnswerToken, "top"> {
  const isText = bytes === null || sameBytes(ENCODER.encode(token), bytes);
  return { id, token, ...(!isText && { bytes }), logprob };
}

function sameBytes(left: Uint8Array, right: readonly number[]): boolean {
  return left.length === right.length && left.every((byte, index) => byte === right[index]);
}
