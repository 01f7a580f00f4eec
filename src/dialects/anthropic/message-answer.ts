import { z } from "zod";
import type { Usage } from "../../engine/protocol/generation.ts";
import { limitField, limitFields } from "../../inference/answer-limit.ts";
import type { Answer } from "../../inference/collect-answer.ts";
import { appliedEdits, appliedEditsField } from "./context-management.ts";
import { parseInput } from "./partial-input.ts";
import { signOmitted, signThinking } from "./thinking-signature.ts";

const contentBlockSchema = z.discriminatedUnion("type", [
  z.object({
    type: z.literal("thinking"),
    thinking: z.string().describe("Empty with thinking.display omitted."),
    signature: z.string(),
  }),
  // No citations field: clients disagree on whether an answer without citations has a list, null or nothing.
  z.object({ type: z.literal("text"), text: z.string() }),
  z.object({
    type: z.literal("tool_use"),
    id: z.string(),
    name: z.string(),
    input: z
      .record(z.string(), z.unknown())
      .describe("The arguments; when max_tokens cut them off, the complete part."),
  }),
]);
export type ContentBlock = z.output<typeof contentBlockSchema>;

const stopReasonSchema = z.enum(["end_turn", "max_tokens", "stop_sequence", "tool_use"]);

const usageSchema = z.object({
  input_tokens: z.int().describe("Tokens of the prompt that were read, template included."),
  output_tokens: z.int().describe("Tokens generated, thinking included."),
  cache_creation_input_tokens: z
    .int()
    .describe("Always 0: every prompt is kept for later ones, without being told to."),
  cache_read_input_tokens: z
    .int()
    .describe("Tokens of the prompt that were reused; with input_tokens, all of it."),
});

export const messageSchema = z
  .object({
    id: z.string(),
    type: z.literal("message"),
    role: z.literal("assistant"),
    model: z.string().describe("The model that generated the answer."),
    content: z.array(contentBlockSchema),
    stop_reason: stopReasonSchema.nullable(),
    stop_sequence: z.string().nullable(),
    limited_by: limitField,
    context_management: appliedEditsField,
    usage: usageSchema,
  })
  .meta({ id: "Message" });
type Message = z.output<typeof messageSchema>;

export function messageId(): string {
  return `msg_${crypto.randomUUID().replaceAll("-", "")}`;
}

/** The ID of a tool call with the API's prefix. */
export function toToolUseId(id: string): string {
  return `toolu_${id.replace(/^(?:call|toolu)_/, "")}`;
}

export function toUsage(
  usage: Pick<Usage, "promptTokens" | "completionTokens" | "cachedTokens">,
): Message["usage"] {
  return {
    input_tokens: usage.promptTokens - usage.cachedTokens,
    output_tokens: usage.completionTokens,
    cache_creation_input_tokens: 0,
    cache_read_input_tokens: usage.cachedTokens,
  };
}

/** @param requested the request's stop sequences: one from the model's settings counts as the end of the turn */
export function toStop(
  { reason, stopSequence }: Pick<Answer, "reason"> & { readonly stopSequence?: string | undefined },
  requested: readonly string[],
): { stop_reason: z.output<typeof stopReasonSchema>; stop_sequence: string | null } {
  if (reason === "length") return { stop_reason: "max_tokens", stop_sequence: null };
  if (reason === "tool_calls") return { stop_reason: "tool_use", stop_sequence: null };
  return stopSequence !== undefined && requested.includes(stopSequence)
    ? { stop_reason: "stop_sequence", stop_sequence: stopSequence }
    : { stop_reason: "end_turn", stop_sequence: null };
}

/** What is the same for a whole message and a stream. */
export interface MessageOptions {
  readonly id: string;
  readonly model: string;
  /** Those of the request. */
  readonly stopSequences: readonly string[];
  /** Thinking blocks have a signature but no text. */
  readonly omitsThinking: boolean;
  /** That of the request. */
  readonly contextManagement?: unknown;
}

export function toMessage(
  { id, model, stopSequences, omitsThinking, contextManagement }: MessageOptions,
  answer: Answer,
): Message {
  const content: ContentBlock[] = [];
  const { reasoning } = answer;
  if (reasoning !== "") {
    content.push(
      omitsThinking
        ? { type: "thinking", thinking: "", signature: signOmitted(reasoning) }
        : { type: "thinking", thinking: reasoning, signature: signThinking(reasoning) },
    );
  }
  if (answer.text !== "") content.push({ type: "text", text: answer.text });
  for (const call of answer.toolCalls) {
    content.push({
      type: "tool_use",
      id: toToolUseId(call.id),
      name: call.name,
      input: parseInput(call.arguments),
    });
  }
  return {
    id,
    type: "message",
    role: "assistant",
    model,
    content,
    ...toStop(answer, stopSequences),
    ...limitFields(answer),
    ...appliedEdits(contextManagement),
    usage: toUsage(answer.usage),
  };
}
