import { z } from "zod";
import {
  finishReasonSchema,
  type FinishReason,
  type TokenLogprob,
  type ToolCall,
  type Usage,
} from "../../engine/protocol/generation.ts";
import type { Answer } from "../../inference/collect-answer.ts";
import type { AnswerEvent } from "./custom-tools.ts";
import { functionCallSchema } from "./legacy-functions.ts";
import {
  type AnswerHead,
  chunkWriter,
  progressFields,
  type StreamOptions,
  timingFields,
  timingsField,
  toCallId,
  toUsage,
  usageSchema,
} from "./openai-fields.ts";
import { STREAM_END } from "./openai-error.ts";
import { limitField, tokenLogprobsSchema } from "../wire/answer-fields.ts";
import { eventTimings, toPromptProgress, toTokenLogprobs } from "../answer-fields.ts";

const logprobsSchema = z.object({ content: tokenLogprobsSchema, refusal: z.null() }).nullable();
type WireLogprobs = z.output<typeof logprobsSchema>;

const toolCallSchema = z.discriminatedUnion("type", [
  z.object({
    id: z.string(),
    type: z.literal("function"),
    function: z.object({ name: z.string(), arguments: z.string().describe("JSON text.") }),
  }),
  z.object({
    id: z.string(),
    type: z.literal("custom"),
    custom: z.object({ name: z.string(), input: z.string() }),
  }),
]);
type WireToolCall = z.output<typeof toolCallSchema>;

const wireReasonSchema = z.enum([...finishReasonSchema.options, "function_call"]);
const legacyCallDescription = "The call, instead of tool_calls, if the request has functions.";

/** Format of the answer. */
interface ChatAnswerStyle {
  /** Use function_call, because the request has functions. */
  readonly legacyCalls: boolean;
  /** Names of the request's custom tools, whose input is text. */
  readonly customTools?: ReadonlySet<string>;
}

const head = {
  id: z.string(),
  created: z.int().describe("Unix seconds."),
  model: z.string().describe("The model that generated the answer."),
};

export const chatCompletionSchema = z
  .object({
    ...head,
    object: z.literal("chat.completion"),
    choices: z.array(
      z.object({
        index: z.int(),
        message: z.object({
          role: z.literal("assistant"),
          content: z.string().nullable().describe("Null if there are only tool calls."),
          refusal: z.null(),
          reasoning_content: z.string().optional().describe("The model's reasoning."),
          tool_calls: z.array(toolCallSchema).optional(),
          function_call: functionCallSchema.optional().describe(legacyCallDescription),
        }),
        logprobs: logprobsSchema,
        finish_reason: wireReasonSchema,
        limited_by: limitField,
      }),
    ),
    usage: usageSchema,
    timings: timingsField,
  })
  .meta({ id: "ChatCompletion" });

const deltaSchema = z.object({
  role: z.literal("assistant").optional(),
  content: z.string().optional(),
  reasoning_content: z.string().optional(),
  tool_calls: z
    .array(
      z.object({
        index: z.int(),
        id: z.string().optional(),
        type: z.enum(["function", "custom"]).optional(),
        function: z.object({ name: z.string().optional(), arguments: z.string() }).optional(),
        custom: z.object({ name: z.string().optional(), input: z.string() }).optional(),
      }),
    )
    .optional(),
  function_call: functionCallSchema.partial({ name: true }).optional().describe(legacyCallDescription),
});
type Delta = z.output<typeof deltaSchema>;

export const chatCompletionChunkSchema = z
  .object({
    ...head,
    object: z.literal("chat.completion.chunk"),
    choices: z.array(
      z.object({
        index: z.int(),
        delta: deltaSchema,
        logprobs: logprobsSchema.optional(),
        finish_reason: wireReasonSchema.nullable(),
        limited_by: limitField,
      }),
    ),
    usage: usageSchema.nullable().optional().describe("With include_usage: null except in the last chunk."),
    ...progressFields,
  })
  .meta({ id: "ChatCompletionChunk" });
type ChunkChoice = z.output<typeof chatCompletionChunkSchema>["choices"][number];

export function toChatCompletion(
  { id, created, model }: AnswerHead,
  answers: readonly Answer[],
  style: ChatAnswerStyle & Pick<StreamOptions, "timingsPerToken">,
): z.output<typeof chatCompletionSchema> {
  return {
    id,
    object: "chat.completion",
    created,
    model,
    choices: answers.map((answer, index) => ({
      index,
      message: {
        role: "assistant",
        content: answer.text === "" && answer.toolCalls.length > 0 ? null : answer.text,
        refusal: null,
        ...(answer.reasoning !== "" && { reasoning_content: answer.reasoning }),
        ...toCalls(answer.toolCalls, style),
      },
      logprobs: toLogprobs(answer.logprobs),
      finish_reason: toReason(answer.reason, style),
      limited_by: answer.limitedBy,
    })),
    usage: toUsage(answers.map(({ usage }) => usage)),
    ...timingFields(answers, style),
  };
}

type WireMessage = z.output<typeof chatCompletionSchema>["choices"][number]["message"];

function toCalls(
  calls: readonly ToolCall[],
  { legacyCalls, customTools }: ChatAnswerStyle,
): Pick<WireMessage, "tool_calls" | "function_call"> {
  const [first] = calls;
  if (!first) return {};
  if (legacyCalls) return { function_call: { name: first.name, arguments: first.arguments } };
  return { tool_calls: calls.map((call) => toToolCall(call, customTools?.has(call.name) ?? false)) };
}

function toToolCall({ id, name, arguments: text }: ToolCall, isCustom: boolean): WireToolCall {
  return isCustom
    ? { id: toCallId(id), type: "custom", custom: { name, input: text } }
    : { id: toCallId(id), type: "function", function: { name, arguments: text } };
}

function toReason(reason: FinishReason, { legacyCalls }: ChatAnswerStyle): z.output<typeof wireReasonSchema> {
  return legacyCalls && reason === "tool_calls" ? "function_call" : reason;
}

/** Yields the events of a streamed answer, including the final `[DONE]`. */
export async function* toChatChunks(
  answer: AnswerHead,
  events: AsyncIterable<AnswerEvent>,
  options: ChatAnswerStyle & StreamOptions,
): AsyncGenerator<string, void, undefined> {
  const frame = chunkWriter("chat.completion.chunk", answer, options);
  const usages: Usage[] = [];
  for await (const event of events) {
    const choice = event.choice ?? 0;
    if (event.type === "prompt-progress") {
      const progress = { prompt_progress: toPromptProgress(event) };
      if (options.returnProgress) yield frame([{ index: choice, delta: {}, finish_reason: null }], progress);
      continue;
    }
    const chunkChoice = toChunkChoice(choice, event, options);
    const timings = options.timingsPerToken ? eventTimings(event) : undefined;
    if (chunkChoice) yield frame([chunkChoice], { timings });
    if (event.type === "done") usages[choice] = event.usage;
  }
  if (options.includeUsage) yield frame([], {}, toUsage(usages));
  yield STREAM_END;
}

/** Converts an event; undefined for one without a counterpart in this API. */
function toChunkChoice(index: number, event: AnswerEvent, style: ChatAnswerStyle): ChunkChoice | undefined {
  if (event.type === "done") {
    return { index, delta: {}, finish_reason: toReason(event.reason, style), limited_by: event.limitedBy };
  }
  const delta = toDelta(event, style);
  if (!delta) return undefined;
  const logprobs = event.type === "text-delta" && event.logprobs ? toLogprobs(event.logprobs) : undefined;
  return { index, delta, ...(logprobs !== undefined && { logprobs }), finish_reason: null };
}

function toDelta(
  event: Exclude<AnswerEvent, { type: "done" }>,
  { legacyCalls }: ChatAnswerStyle,
): Delta | undefined {
  if (event.type === "start") return { role: "assistant", content: "" };
  if (event.type === "text-delta") return { content: event.text };
  if (event.type === "reasoning-delta") return { reasoning_content: event.text };
  if (event.type === "tool-call-start") {
    const { index, name } = event;
    if (legacyCalls) return { function_call: { name, arguments: "" } };
    const start = { index, id: toCallId(event.id) };
    return {
      tool_calls: [
        event.isCustom
          ? { ...start, type: "custom", custom: { name, input: "" } }
          : { ...start, type: "function", function: { name, arguments: "" } },
      ],
    };
  }
  if (event.type === "tool-call-delta") {
    const { index, arguments: text } = event;
    if (legacyCalls) return { function_call: { arguments: text } };
    return {
      tool_calls: [
        { index, ...(event.isCustom ? { custom: { input: text } } : { function: { arguments: text } }) },
      ],
    };
  }
  return undefined;
}

function toLogprobs(logprobs: readonly TokenLogprob[]): WireLogprobs {
  return logprobs.length === 0 ? null : { content: toTokenLogprobs(logprobs), refusal: null };
}
