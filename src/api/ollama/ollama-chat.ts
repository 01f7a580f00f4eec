import { z } from "zod";
import { optional } from "../../http/input/common-fields.ts";
import { isRecord } from "../../json/json-values.ts";
import {
  type ChatMessage,
  type ContentPart,
  type FinishReason,
  type ToolCall,
} from "../../engine/protocol/generation.ts";
import { ServiceError } from "../../errors/service-error.ts";
import { dictionary, list } from "../../http/input/bounded-lists.ts";
import { type Answer, joinToolCalls } from "../../inference/collect-answer.ts";
import { DEFAULT_SAMPLING } from "../../inference/default-sampling.ts";
import type { InferenceEvent, InferenceRequest } from "../../inference/inference.ts";
import { decodeMedia } from "../../inference/media-data.ts";
import type { Model } from "../../models/model.ts";
import { line } from "./ollama-error.ts";
import {
  generationFields,
  type Label,
  labeled,
  labelFields,
  logprobFields,
  logprobsField,
  modelField,
  type ResidencyReason,
  residencyReasonField,
  summary,
  summaryFields,
  toFormat,
  toLogprobs,
} from "./ollama-fields.ts";
import { toMaxTokens, toResidency, toStop } from "./ollama-options.ts";
import { chatInput, chatMessage, textParts, toolDefinition } from "../chat-input.ts";
import { functionSchema, thinkSchema } from "../wire/generation-fields.ts";
import { thinkingFromLevel, toReasoningBudget, toSampling } from "../request-settings.ts";

const messageSchema = z.object({
  role: z.enum(["system", "developer", "user", "assistant", "tool"]),
  content: optional(z.string(), "Message text."),
  thinking: optional(z.string(), "The model's earlier reasoning, for chat templates that include it."),
  images: optional(
    list(z.string()),
    "Images (PNG, JPEG, GIF, BMP, WebP) and audio (WAV, MP3, FLAC) as base64.",
  ),
  tool_calls: optional(
    list(
      z.object({
        id: z.string().nullish(),
        function: z.object({
          name: z.string(),
          arguments: optional(z.union([dictionary(z.unknown()), z.string()]), "An object or JSON text."),
        }),
      }),
    ),
    "Tool calls of the model in this turn.",
  ),
  tool_name: optional(z.string(), "Name of the tool, in a tool result."),
  tool_call_id: optional(
    z.string(),
    "ID of the call, in a tool result. Default: the first call without a result.",
  ),
});
type WireMessage = z.output<typeof messageSchema>;

const toolSchema = z.object({
  type: z.string().nullish(),
  function: functionSchema,
});

/** POST /api/chat of the Ollama API. Unknown fields are ignored. */
export const chatRequestSchema = z
  .object({
    model: modelField,
    messages: optional(
      list(messageSchema),
      "The conversation. Empty: only load the model, or unload it with keep_alive 0.",
    ),
    tools: optional(list(toolSchema), "Functions the model may call."),
    think: thinkSchema.describe(
      'Let the model think before it answers: true, false, or "low", "medium", "high", "max". A level is passed to the chat template; for a template without levels, it limits thinking to 1024, 4096 or 16384 tokens. Default: the Modelfile\'s THINKING, otherwise false.',
    ),
    ...generationFields,
  })
  .meta({ id: "OllamaChatRequest" });
export type ChatRequest = z.output<typeof chatRequestSchema>;

/** @throws ServiceError invalid_parameter for an invalid image */
export function toChatRequest(body: ChatRequest, model: Model): InferenceRequest {
  return {
    endpoint: "chat",
    model: model.alias,
    isBuffered: body.stream === false,
    input: chatInput(linkToolResults((body.messages ?? []).map(toMessage)), {
      tools: (body.tools ?? []).map((tool) => toolDefinition(tool.function)),
      ...thinkingFromLevel(body.think),
    }),
    maxTokens: toMaxTokens(body.options, model),
    stop: toStop(body.options),
    sampling: toSampling(body.options ?? {}),
    format: toFormat(body.format),
    logprobs: toLogprobs(body),
    ...toReasoningBudget(body),
    residency: toResidency(body, model),
    repetitionGuard: body.options?.repetition_guard ?? undefined,
    defaults: { sampling: DEFAULT_SAMPLING },
  };
}

function toMessage(message: WireMessage, index: number): ChatMessage {
  const images = (message.images ?? []).map((file, at): ContentPart =>
    decodeMedia(file, `messages.${index}.images.${at}`),
  );
  const { role, thinking: reasoning, tool_calls: toolCalls, tool_call_id: toolCallId } = message;
  const content = [...images, ...textParts(message.content)];
  const name = role === "tool" ? message.tool_name : undefined;
  return chatMessage({ role, content, reasoning, toolCalls, toolCallId, name }, index);
}

const wireToolCallSchema = z
  .object({
    id: z.string(),
    function: z.object({
      index: z.int(),
      name: z.string(),
      arguments: z.record(z.string(), z.unknown()).describe("An object, not JSON text."),
    }),
  })
  .meta({ id: "OllamaToolCall" });

const answerMessageSchema = z.object({
  role: z.literal("assistant"),
  content: z.string().describe("The text, or part of it."),
  thinking: z.string().optional().describe("The model's reasoning, or part of it."),
  tool_calls: z.array(wireToolCallSchema).optional(),
});
type AnswerMessage = z.output<typeof answerMessageSchema>;

const chatFields = { ...labelFields, message: answerMessageSchema, logprobs: logprobsField };

export const chatAnswerSchema = z
  .object({ ...chatFields, done: z.literal(true), ...summaryFields })
  .meta({ id: "OllamaChatAnswer" });
/** Answer to a request without messages. */
const chatLoadSchema = z.object({
  ...labelFields,
  message: answerMessageSchema,
  done: z.literal(true),
  done_reason: residencyReasonField,
});
export const chatLineSchema = z.union([
  z.object({ ...chatFields, done: z.literal(false) }),
  chatAnswerSchema,
]);

export function toChatAnswer(answer: Answer, label: Label): z.output<typeof chatAnswerSchema> {
  const calls = wireToolCalls(answer.toolCalls, answer.reason);
  return {
    ...labeled(label),
    message: assistantMessage(answer.text, {
      ...(answer.reasoning !== "" && { thinking: answer.reasoning }),
      ...(calls.length > 0 && { tool_calls: calls }),
    }),
    ...logprobFields(answer.logprobs),
    done: true,
    ...summary(answer, label.loadMs),
  };
}

export function toChatLoad(
  reason: ResidencyReason,
  label: Pick<Label, "model" | "now">,
): z.output<typeof chatLoadSchema> {
  return { ...labeled(label), message: assistantMessage(""), done: true, done_reason: reason };
}

/** Yields one line per chunk, one with the tool calls, and an empty message with the statistics. */
export async function* toChatLines(
  events: AsyncIterable<InferenceEvent>,
  label: Label,
): AsyncGenerator<string, void, undefined> {
  const delta = (value: Omit<z.output<typeof chatLineSchema>, "done" | "model" | "created_at">): string =>
    line({ ...labeled(label), ...value, done: false });
  const calls: ToolCall[] = [];
  for await (const event of joinToolCalls(events)) {
    switch (event.type) {
      case "start":
      case "prompt-progress":
        break;
      case "text-delta":
        yield delta({ message: assistantMessage(event.text), ...logprobFields(event.logprobs) });
        break;
      case "reasoning-delta":
        yield delta({ message: assistantMessage("", { thinking: event.text }) });
        break;
      case "tool-call":
        calls.push(event.call);
        break;
      case "done": {
        const wire = wireToolCalls(calls, event.reason);
        if (wire.length > 0) yield delta({ message: assistantMessage("", { tool_calls: wire }) });
        yield line({
          ...labeled(label),
          message: assistantMessage(""),
          done: true,
          ...summary(event, label.loadMs),
        });
      }
    }
  }
}

function assistantMessage(content: string, more: Partial<AnswerMessage> = {}): AnswerMessage {
  return { role: "assistant", content, ...more };
}

type WireToolCall = z.output<typeof wireToolCallSchema>;

/**
 * Converts calls to this API's format, with arguments as objects. Drops a call that the token limit cut off.
 * @throws ServiceError inference_failed when the model's arguments are not an object
 */
function wireToolCalls(calls: readonly ToolCall[], reason: FinishReason): WireToolCall[] {
  return calls.flatMap(({ id, name, arguments: text }, index) => {
    const parsed = parseObject(text);
    if (parsed) return [{ id, function: { index, name, arguments: parsed } }];
    if (reason === "length") return [];
    throw new ServiceError(
      "inference_failed",
      `The model called "${name}" with arguments that are not a JSON object.`,
    );
  });
}

function parseObject(text: string): Record<string, unknown> | undefined {
  if (text.trim() === "") return {};
  try {
    const value: unknown = JSON.parse(text);
    return isRecord(value) ? { ...value } : undefined;
  } catch {
    return undefined;
  }
}

/**
 * Adds call IDs to tool results: many templates need them, but clients of this API seldom send them. A result belongs
 * to the first call without a result, of its tool if it names one.
 */
function linkToolResults(messages: readonly ChatMessage[]): ChatMessage[] {
  let pending: ToolCall[] = [];
  return messages.map((message) => {
    if (message.role === "assistant") pending = [...(message.toolCalls ?? [])];
    if (message.role !== "tool") return message;
    const call = pending.find(({ id, name }) =>
      message.toolCallId === undefined ? name === (message.name ?? name) : id === message.toolCallId,
    );
    if (!call) return message;
    pending = pending.filter((each) => each !== call);
    return { ...message, toolCallId: call.id, name: message.name ?? call.name };
  });
}
