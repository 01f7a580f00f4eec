import type { z } from "zod";
import type {
  AnswerLimit,
  Figures,
  OutputFormat,
  TokenLogprob,
  ToolCall,
  ToolChoice,
  ToolDefinition,
  Usage,
} from "../../engine/protocol/generation.ts";
import type { AnswerFailovers, RequestedFormat } from "../../inference/inference.ts";
import { limitFields } from "../answer-fields.ts";
import { toolDefinition } from "../chat-input.ts";
import { checkFormatWithTools, toSingleFormat } from "../structured-output.ts";
import type { AnswerToken, generationFields, logprobFields, wireToolCallSchema } from "../wire/native.ts";

type GenerationFields = z.output<z.ZodObject<typeof generationFields>>;

export function toLogprobs({
  logprobs,
  n_probs: probabilities,
}: Partial<z.output<z.ZodObject<typeof logprobFields>>>): number | undefined {
  return logprobs ?? (probabilities || undefined);
}

export function toMaxTokens(body: GenerationFields): number | undefined {
  return body.max_tokens ?? body.n_predict ?? undefined;
}

/** @throws ServiceError invalid_parameter for several formats, or for a grammar combined with tools */
export function toFormat(body: GenerationFields): RequestedFormat {
  const format = toSingleFormat(body, { param: "format", format: toApiFormat(body.format) });
  checkFormatWithTools(format, (body.tools ?? []).length > 0 && body.tool_choice !== "none");
  return format;
}

function toApiFormat(format: GenerationFields["format"]): OutputFormat {
  if (format == null || format === "") return { type: "text" };
  return format === "json" ? { type: "json" } : { type: "json_schema", schema: format };
}

export function toTools(tools: GenerationFields["tools"]): ToolDefinition[] {
  return (tools ?? []).map((tool) => toolDefinition(tool.function));
}

export function toToolChoice(choice: GenerationFields["tool_choice"]): ToolChoice {
  if (choice == null) return "auto";
  return typeof choice === "string" ? choice : { name: choice.function.name };
}

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

type WireToolCall = z.output<typeof wireToolCallSchema>;

export function wireToolCall({ id, name, arguments: text }: ToolCall): WireToolCall {
  return { id, type: "function", function: { name, arguments: text } };
}

const ENCODER = new TextEncoder();

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
