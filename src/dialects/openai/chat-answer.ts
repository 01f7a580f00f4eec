import { z } from "zod";
import { finishReasonSchema, type TokenLogprob, type Usage } from "../../engine/protocol/generation.ts";
import { sseData } from "../../http/streaming/sse-frame.ts";
import { limitField, limitFields } from "../../inference/answer-limit.ts";
import type { Answer } from "../../inference/collect-answer.ts";
import type { ChoiceEvent } from "../../inference/generate-choices.ts";
import type { InferenceEvent } from "../../inference/inference.ts";
import {
  type AnswerHead,
  toCallId,
  tokenLogprobsSchema,
  toTokenLogprobs,
  toUsage,
  usageSchema,
} from "./openai-answer-fields.ts";
import { STREAM_END } from "./openai-error.ts";

const logprobsSchema = z.object({ content: tokenLogprobsSchema, refusal: z.null() }).nullable();
type WireLogprobs = z.output<typeof logprobsSchema>;

const toolCallSchema = z.object({
  id: z.string(),
  type: z.literal("function"),
  function: z.object({ name: z.string(), arguments: z.string().describe("JSON text.") }),
});

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
          content: z.string().nullable().describe("Null when there are only tool calls."),
          refusal: z.null(),
          reasoning_content: z.string().optional().describe("The model's reasoning."),
          tool_calls: z.array(toolCallSchema).optional(),
        }),
        logprobs: logprobsSchema,
        finish_reason: finishReasonSchema,
        limited_by: limitField,
      }),
    ),
    usage: usageSchema,
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
        type: z.literal("function").optional(),
        function: z.object({ name: z.string().optional(), arguments: z.string() }),
      }),
    )
    .optional(),
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
        finish_reason: finishReasonSchema.nullable(),
        limited_by: limitField,
      }),
    ),
    usage: usageSchema.nullable().optional().describe("With include_usage: null except in the last chunk."),
  })
  .meta({ id: "ChatCompletionChunk" });
type Chunk = z.output<typeof chatCompletionChunkSchema>;
type ChunkChoice = Chunk["choices"][number];

export function toChatCompletion(
  { id, created, model }: AnswerHead,
  answers: readonly Answer[],
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
        ...(answer.toolCalls.length > 0 && {
          tool_calls: answer.toolCalls.map(({ id: callId, name, arguments: text }) => ({
            id: toCallId(callId),
            type: "function",
            function: { name, arguments: text },
          })),
        }),
      },
      logprobs: toLogprobs(answer.logprobs),
      finish_reason: answer.reason,
      ...limitFields(answer),
    })),
    usage: toUsage(answers.map(({ usage }) => usage)),
  };
}

/** The events of a streamed answer, including the final `[DONE]`. */
export async function* toChatChunks(
  answer: AnswerHead,
  events: AsyncIterable<ChoiceEvent>,
  includeUsage: boolean,
): AsyncGenerator<string, void, undefined> {
  const frame = (choices: ChunkChoice[], usage: Chunk["usage"]): string => {
    const { id, created, model } = answer;
    const chunk: Chunk = { id, object: "chat.completion.chunk", created, model, choices };
    return sseData(includeUsage ? { ...chunk, usage } : chunk);
  };
  const usages: Usage[] = [];
  for await (const event of events) {
    const choice = event.choice ?? 0;
    const more = toChunkChoice(choice, event);
    if (more) yield frame([more], null);
    if (event.type === "done") usages[choice] = event.usage;
  }
  if (includeUsage) yield frame([], toUsage(usages));
  yield STREAM_END;
}

/** Undefined for an event that the API does not send. */
function toChunkChoice(index: number, event: InferenceEvent): ChunkChoice | undefined {
  if (event.type === "done") return { index, delta: {}, finish_reason: event.reason, ...limitFields(event) };
  const delta = toDelta(event);
  if (!delta) return undefined;
  const logprobs = event.type === "text-delta" && event.logprobs ? toLogprobs(event.logprobs) : undefined;
  return { index, delta, ...(logprobs !== undefined && { logprobs }), finish_reason: null };
}

function toDelta(event: Exclude<InferenceEvent, { type: "done" }>): Delta | undefined {
  if (event.type === "start") return { role: "assistant", content: "" };
  if (event.type === "text-delta") return { content: event.text };
  if (event.type === "reasoning-delta") return { reasoning_content: event.text };
  if (event.type === "tool-call-start") {
    const call = { name: event.name, arguments: "" };
    return { tool_calls: [{ index: event.index, id: toCallId(event.id), type: "function", function: call }] };
  }
  if (event.type === "tool-call-delta") {
    return { tool_calls: [{ index: event.index, function: { arguments: event.arguments } }] };
  }
  return undefined;
}

function toLogprobs(logprobs: readonly TokenLogprob[]): WireLogprobs {
  return logprobs.length === 0 ? null : { content: toTokenLogprobs(logprobs), refusal: null };
}
