import type { z } from "zod";
import type {
  Figures,
  OutputFormat,
  TokenLogprob,
  ToolCall,
  ToolChoice,
  ToolDefinition,
  Usage,
} from "../../engine/protocol/generation.ts";
import { ndjsonLine } from "../../http/errors.ts";
import type { modelField } from "../../http/input/common-fields.ts";
import { type Answer, joinToolCalls } from "../../inference/collect-answer.ts";
import { DEFAULT_SAMPLING } from "../../inference/default-sampling.ts";
import type { InferenceStream, RequestedFormat } from "../../inference/inference.ts";
import { toPromptProgress } from "../answer-fields.ts";
import { toolDefinition } from "../chat-input.ts";
import { commonSettings, toReasoningBudget } from "../request-settings.ts";
import { checkFormatWithTools, toSingleFormat } from "../structured-output.ts";
import {
  type AnswerToken,
  DEFAULT_MAX_TOKENS,
  type generationFields,
  type logprobFields,
  type wireToolCallSchema,
} from "../wire/native.ts";

type GenerationFields = z.output<z.ZodObject<typeof generationFields>>;
type LogprobFields = Partial<z.output<z.ZodObject<typeof logprobFields>>>;

/** Returns the settings that chats and prompts have in common. */
export function toSettings(body: GenerationFields & LogprobFields & { model?: z.output<typeof modelField> }) {
  return {
    ...commonSettings(body),
    maxTokens: toMaxTokens(body),
    stop: body.stop ?? undefined,
    format: toFormat(body),
    logprobs: body.logprobs ?? (body.n_probs || undefined),
    timings: body.timings_per_token ?? false,
    ...toReasoningBudget(body),
    defaults: { maxTokens: DEFAULT_MAX_TOKENS, sampling: DEFAULT_SAMPLING },
  };
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

export function summary(
  end: Pick<Answer, "reason" | "limitedBy" | "moved" | "usage" | "totalMs" | "tokensPerSecond">,
) {
  return {
    done_reason: end.reason,
    limited_by: end.limitedBy,
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

/** Returns the statistics so far, if the engine reported them. */
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

/** Text, reasoning and tool calls of an answer or of a part of it. */
export interface Content {
  readonly text: string;
  readonly thinking?: string;
  readonly tool_calls?: WireToolCall[];
}

export function contentOf({ text, reasoning, toolCalls }: Answer): Content {
  return {
    text,
    ...(reasoning !== "" && { thinking: reasoning }),
    ...(toolCalls.length > 0 && { tool_calls: toolCalls.map(wireToolCall) }),
  };
}

/** @param place returns the fields that hold the content */
export function toAnswer(model: string, answer: Answer, place: (content: Content) => object): object {
  return {
    model,
    ...place(contentOf(answer)),
    ...tokenFields(answer.logprobs),
    done: true,
    ...summary(answer),
  };
}

/**
 * Yields the lines of a streamed answer: one per chunk, then one without content that has the statistics.
 * @param place returns the fields that hold the content
 * @param returnProgress also yield a line for each prefill step
 */
export async function* toLines(
  { model, events }: InferenceStream,
  place: (content: Content) => object,
  returnProgress: boolean,
): AsyncGenerator<string> {
  const delta = (content: Partial<Content>, more: object = {}): string =>
    ndjsonLine({ model, ...place({ text: "", ...content }), ...more, done: false });
  for await (const event of joinToolCalls(events)) {
    switch (event.type) {
      case "start":
        break;
      case "prompt-progress":
        if (returnProgress) yield delta({}, { prompt_progress: toPromptProgress(event) });
        break;
      case "text-delta":
        yield delta({ text: event.text }, { ...tokenFields(event.logprobs), ...deltaStatistics(event) });
        break;
      case "reasoning-delta":
        yield delta({ thinking: event.text }, deltaStatistics(event));
        break;
      case "tool-call":
        yield delta({ tool_calls: [wireToolCall(event.call)] });
        break;
      case "done":
        yield ndjsonLine({ model, ...place({ text: "" }), done: true, ...summary(event) });
    }
  }
}

const ENCODER = new TextEncoder();

/** Returns the field `logprobs`, if there are any tokens. */
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
