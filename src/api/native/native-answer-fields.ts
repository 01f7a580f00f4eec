import { z } from "zod";
import {
  type Figures,
  finishReasonSchema,
  type TokenLogprob,
  type ToolCall,
  type Usage,
} from "../../engine/protocol/generation.ts";
import { type AnswerLimit, type AnswerMoves, limitField, limitFields } from "../../inference/inference.ts";

/** How much has been read and generated, and how fast. */
const figureFields = {
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

/** With timings_per_token, the same of a piece of an answer up to there. */
export const pieceFigureFields = z.object(figureFields).partial().shape;

/** The last fields of an answer, streamed or not. */
export const summaryFields = {
  done_reason: finishReasonSchema.describe(
    "Why it ended: end of turn or a stop sequence, the token limit, or tool calls.",
  ),
  limited_by: limitField,
  total_duration_ms: z
    .int()
    .describe("Milliseconds from receiving the request to the end, queueing included."),
  moved: z
    .object({
      times: z.int().describe("How often another machine has gone on with it."),
      other_tokens: z
        .int()
        .describe(
          "Tokens that you had by then, and instead of which the next machine would have said others; 0: the text is what a single machine says.",
        ),
    })
    .optional()
    .describe("In a fleet: the machine that answered was gone, and others have gone on."),
  ...figureFields,
};

/** More decimals of tokens_per_second would be noise. */
const RATE_DECIMALS = 2;

export function summary(end: {
  reason: "stop" | "length" | "tool_calls";
  limitedBy?: AnswerLimit | undefined;
  moved?: AnswerMoves | undefined;
  usage: Usage;
  totalMs: number;
  tokensPerSecond: number;
}) {
  return {
    done_reason: end.reason,
    ...limitFields(end),
    ...(end.moved && { moved: { times: end.moved.times, other_tokens: end.moved.otherTokens } }),
    total_duration_ms: Math.round(end.totalMs),
    ...figures(end.usage, end.tokensPerSecond),
  };
}

function figures({ promptTokens, cachedTokens, completionTokens, guesses }: Usage, tokensPerSecond: number) {
  return {
    prompt_tokens: promptTokens,
    cached_tokens: cachedTokens,
    completion_tokens: completionTokens,
    ...(guesses && { draft_tokens: guesses.tokens, draft_tokens_accepted: guesses.kept }),
    tokens_per_second: Number(tokensPerSecond.toFixed(RATE_DECIMALS)),
  };
}

/** The fields of {@link pieceFigureFields}, if the engine has told them. */
export function deltaFigures({ soFar }: { readonly soFar?: Figures | undefined }) {
  if (!soFar) return {};
  const { usage, timings } = soFar;
  // As at the end: the first token comes with the prompt.
  const milliseconds = timings.completionMs + (usage.completionTokens > 1 ? 0 : timings.promptMs);
  return figures(usage, milliseconds > 0 ? (1000 * usage.completionTokens) / milliseconds : 0);
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

const tokenShape = {
  id: z.int().describe("Number of the token in the model's vocabulary."),
  token: z.string().describe("Its text."),
  bytes: z.array(z.int()).optional().describe("Its bytes, if they are not valid UTF-8 by themselves."),
  logprob: z.number().describe("Natural logarithm of its probability, before sampling."),
};

export const answerTokenSchema = z
  .object({
    ...tokenShape,
    top: z.array(z.object(tokenShape)).describe("The most likely tokens at this place."),
  })
  .meta({ id: "AnswerToken" });
/** A token of an answer, as the daemon's own API reports it. */
export type AnswerToken = z.output<typeof answerTokenSchema>;

const ENCODER = new TextEncoder();

/** For answers and pieces of them. */
export const logprobsField = {
  logprobs: z
    .array(answerTokenSchema)
    .optional()
    .describe("Tokens of the text, if the request asks for them."),
};

/** The field of {@link logprobsField}, if there are any tokens. */
export function tokenFields(logprobs: readonly TokenLogprob[] | undefined): { logprobs?: AnswerToken[] } {
  return logprobs && logprobs.length > 0 ? { logprobs: logprobs.map(toAnswerToken) } : {};
}

export function toAnswerToken({ top, ...token }: TokenLogprob): AnswerToken {
  return { ...withBytes(token), top: top.map(withBytes) };
}

/** Most tokens are text, whose bytes are known. */
function withBytes({ id, token, bytes, logprob }: Omit<TokenLogprob, "top">): Omit<AnswerToken, "top"> {
  const isText = bytes === null || sameBytes(ENCODER.encode(token), bytes);
  return { id, token, ...(!isText && { bytes }), logprob };
}

function sameBytes(left: Uint8Array, right: readonly number[]): boolean {
  return left.length === right.length && left.every((byte, index) => byte === right[index]);
}
