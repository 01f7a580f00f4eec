import { z } from "zod";
import { nativeErrorSchema } from "../../http/errors.ts";
import type { InferenceStream } from "../../inference/inference.ts";
import { joinToolCalls } from "../../inference/collect-answer.ts";
import { chatFields } from "./native-chat.ts";
import {
  answerTokenSchema,
  deltaStatisticsFields,
  summaryFields,
  wireToolCallSchema,
} from "../wire/native.ts";
import { deltaStatistics, summary, tokenFields, wireToolCall } from "./native-conversion.ts";
import { promptProgressSchema } from "../wire/answer-fields.ts";
import { toPromptProgress } from "../answer-fields.ts";

/** Maximum length of a chat ID; a UUID has 36 characters. */
export const MAX_ID_LENGTH = 128;

const id = z
  .string()
  .min(1)
  .max(MAX_ID_LENGTH)
  .describe("ID of a chat, chosen by the client and repeated in its frames.");

/** Frame from a client of /ws/chat: one JSON object per text frame. */
export const clientFrameSchema = z
  .discriminatedUnion("type", [
    z.object({ type: z.literal("chat"), id, ...chatFields }),
    z.object({ type: z.literal("cancel"), id }),
    z.object({ type: z.literal("ping"), id: id.optional() }),
  ])
  .meta({ id: "ChatClientFrame" });

/** Frame from the daemon. Each chat gets a start, deltas, then a done or an error. */
export const serverFrameSchema = z
  .union([
    z.object({
      type: z.literal("start"),
      id,
      model: z.string().describe("The model that generated the answer."),
    }),
    z.object({ type: z.literal("progress"), id, ...promptProgressSchema.shape }),
    z.object({
      type: z.literal("delta"),
      id,
      content: z.string().describe("Part of the text."),
      logprobs: z
        .array(answerTokenSchema)
        .optional()
        .describe("Tokens of the text, if the chat requests them."),
      ...deltaStatisticsFields,
    }),
    z.object({
      type: z.literal("reasoning"),
      id,
      content: z.string().describe("Part of the reasoning."),
      ...deltaStatisticsFields,
    }),
    z.object({ type: z.literal("tool_call"), id, tool_call: wireToolCallSchema }),
    z.object({
      type: z.literal("done"),
      id,
      model: z.string(),
      ...summaryFields,
    }),
    z.object({
      type: z.literal("done"),
      id,
      done_reason: z
        .literal("cancelled")
        .describe("The client cancelled the chat; there are no token counts."),
    }),
    nativeErrorSchema.extend({ type: z.literal("error"), id: id.optional() }),
    z.object({ type: z.literal("pong"), id: id.optional() }),
  ])
  .meta({ id: "ChatServerFrame" });

export type ClientFrame = z.output<typeof clientFrameSchema>;
export type ServerFrame = z.output<typeof serverFrameSchema>;

/**
 * Yields the frames of one answer.
 * @param returnProgress also yield a frame for each prefill step
 */
export async function* toFrames(
  chatId: string,
  { model, events }: InferenceStream,
  returnProgress = false,
): AsyncGenerator<ServerFrame, void, undefined> {
  yield { type: "start", id: chatId, model };
  for await (const event of joinToolCalls(events)) {
    switch (event.type) {
      case "start":
        break;
      case "prompt-progress": {
        if (returnProgress) yield { type: "progress", id: chatId, ...toPromptProgress(event) };
        break;
      }
      case "text-delta": {
        yield {
          type: "delta",
          id: chatId,
          content: event.text,
          ...tokenFields(event.logprobs),
          ...deltaStatistics(event),
        };
        break;
      }
      case "reasoning-delta":
        yield { type: "reasoning", id: chatId, content: event.text, ...deltaStatistics(event) };
        break;
      case "tool-call":
        yield { type: "tool_call", id: chatId, tool_call: wireToolCall(event.call) };
        break;
      case "done":
        yield { type: "done", id: chatId, model, ...summary(event) };
    }
  }
}
