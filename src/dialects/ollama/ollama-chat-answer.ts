import { z } from "zod";
import type { ToolCall } from "../../engine/protocol/generation.ts";
import type { Answer } from "../../inference/collect-answer.ts";
import type { InferenceEvent } from "../../inference/inference.ts";
import { wholeToolCalls } from "../../inference/whole-tool-calls.ts";
import { line } from "./ollama-error.ts";
import {
  labelFields,
  labeled,
  logprobFields,
  logprobsField,
  residencyReasonField,
  summary,
  summaryFields,
  type Label,
  type ResidencyReason,
} from "./ollama-answer-fields.ts";
import { wireToolCalls, wireToolCallSchema } from "./tool-calls.ts";

const messageSchema = z.object({
  role: z.literal("assistant"),
  content: z.string().describe("The text, or a piece of it."),
  thinking: z.string().optional().describe("What the model thought, or a piece of it."),
  tool_calls: z.array(wireToolCallSchema).optional(),
});
type Message = z.output<typeof messageSchema>;

const common = { ...labelFields, message: messageSchema, logprobs: logprobsField };

export const chatAnswerSchema = z
  .object({ ...common, done: z.literal(true), ...summaryFields })
  .meta({ id: "OllamaChatAnswer" });
/** The answer when there are no messages. */
const chatLoadSchema = z.object({
  ...labelFields,
  message: messageSchema,
  done: z.literal(true),
  done_reason: residencyReasonField,
});
export const chatLineSchema = z.union([z.object({ ...common, done: z.literal(false) }), chatAnswerSchema]);

export function toChatAnswer(answer: Answer, label: Label): z.output<typeof chatAnswerSchema> {
  const calls = wireToolCalls(answer.toolCalls, answer.reason);
  return {
    ...labeled(label),
    message: assistant(answer.text, {
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
  return { ...labeled(label), message: assistant(""), done: true, done_reason: reason };
}

/** A line for each piece, one with the tool calls, and a last one with an empty message and the summary. */
export async function* toChatLines(
  events: AsyncIterable<InferenceEvent>,
  label: Label,
): AsyncGenerator<string, void, undefined> {
  const piece = (value: Omit<z.output<typeof chatLineSchema>, "done" | "model" | "created_at">): string =>
    line({ ...labeled(label), ...value, done: false });
  const calls: ToolCall[] = [];
  for await (const event of wholeToolCalls(events)) {
    switch (event.type) {
      case "start":
      case "prompt-progress":
        break;
      case "text-delta":
        yield piece({ message: assistant(event.text), ...logprobFields(event.logprobs) });
        break;
      case "reasoning-delta":
        yield piece({ message: assistant("", { thinking: event.text }) });
        break;
      case "tool-call":
        calls.push(event.call);
        break;
      case "done": {
        const wire = wireToolCalls(calls, event.reason);
        if (wire.length > 0) yield piece({ message: assistant("", { tool_calls: wire }) });
        yield line({
          ...labeled(label),
          message: assistant(""),
          done: true,
          ...summary(event, label.loadMs),
        });
      }
    }
  }
}

function assistant(content: string, more: Partial<Message> = {}): Message {
  return { role: "assistant", content, ...more };
}
