import { z } from "zod";
import type { FinishReason, TokenLogprob, ToolCall } from "../../engine/protocol/generation.ts";
import { ndjsonLine } from "../../http/errors.ts";
import { ServiceError } from "../../errors/service-error.ts";
import { type Answer, joinToolCalls } from "../../inference/collect-answer.ts";
import type { InferenceEvent } from "../../inference/inference.ts";
import { isRecord, tryJson } from "../../json/json-values.ts";
import { toTokenLogprobs } from "../answer-fields.ts";
import { limitField, tokenLogprobsSchema } from "../wire/answer-fields.ts";

const NS_PER_MS = 1e6;

/** Converts milliseconds to whole nanoseconds, the unit of this API. */
export function nanoseconds(milliseconds: number): number {
  return Math.round(milliseconds * NS_PER_MS);
}

/** Final fields of an answer, streamed or not. */
export const summaryFields = {
  done_reason: z
    .enum(["stop", "length"])
    .describe("length: token limit; stop: any other end, including tool calls."),
  limited_by: limitField,
  total_duration: z
    .int()
    .describe("Nanoseconds from the receipt of the request to the end, including the time in the queue."),
  load_duration: z.int().describe("Nanoseconds to load the model."),
  prompt_eval_count: z.int().describe("Tokens in the prompt, chat template included."),
  prompt_eval_cached_count: z.int().describe("Prompt tokens reused from the KV cache."),
  prompt_eval_duration: z.int().describe("Nanoseconds of prefill."),
  eval_count: z.int().describe("Tokens generated."),
  eval_duration: z.int().describe("Nanoseconds of decoding."),
};

type AnswerEnd = Pick<Answer, "reason" | "limitedBy" | "usage" | "timings" | "totalMs">;

function summary({ reason, limitedBy, usage, timings, totalMs }: AnswerEnd, loadMs: number) {
  return {
    done_reason: reason === "length" ? ("length" as const) : ("stop" as const),
    limited_by: limitedBy,
    total_duration: nanoseconds(totalMs),
    load_duration: nanoseconds(loadMs),
    prompt_eval_count: usage.promptTokens,
    prompt_eval_cached_count: usage.cachedTokens,
    prompt_eval_duration: nanoseconds(timings.promptMs),
    eval_count: usage.completionTokens,
    eval_duration: nanoseconds(timings.completionMs),
  };
}

export const logprobsField = tokenLogprobsSchema.optional().describe("Tokens of this chunk, if requested.");

/** Returns the logprobs field of an answer or a line, if there are any. */
function logprobFields(logprobs: readonly TokenLogprob[] | undefined): {
  logprobs?: z.output<typeof logprobsField>;
} {
  if (!logprobs || logprobs.length === 0) return {};
  return { logprobs: toTokenLogprobs(logprobs) };
}

export const labelFields = {
  model: z.string().describe("Model name in the request."),
  created_at: z.string().describe("ISO 8601."),
};

function labeled(model: string) {
  return { model, created_at: new Date().toISOString() };
}

/** Reason why a request without a prompt ends: it only loads or unloads the model. */
export type ResidencyReason = "load" | "unload";

export const wireToolCallSchema = z
  .object({
    id: z.string(),
    function: z.object({
      index: z.int(),
      name: z.string(),
      arguments: z.record(z.string(), z.unknown()).describe("An object, not JSON text."),
    }),
  })
  .meta({ id: "OllamaToolCall" });

type WireToolCall = z.output<typeof wireToolCallSchema>;

/**
 * Converts calls to this API's format, with arguments as objects. Drops a call that the token limit cut off.
 * @throws ServiceError inference_failed when the model's arguments are not an object
 */
function wireToolCalls(calls: readonly ToolCall[], reason: FinishReason): WireToolCall[] {
  return calls.flatMap(({ id, name, arguments: text }, index) => {
    const parsed = text.trim() === "" ? {} : tryJson(text);
    if (isRecord(parsed)) return [{ id, function: { index, name, arguments: parsed } }];
    if (reason === "length") return [];
    throw new ServiceError(
      "inference_failed",
      `The model called "${name}" with arguments that are not a JSON object.`,
    );
  });
}

/** Text, reasoning and tool calls of an answer or of a part of it. */
export interface Content {
  readonly text: string;
  readonly thinking?: string;
  readonly tool_calls?: WireToolCall[];
}
/** Returns the fields of an answer or a line that hold the content. */
type Place = (content: Content) => object;

/** Values of the fields that start and end every answer. */
interface Label {
  /** Model name in the request. */
  readonly model: string;
  readonly loadMs: number;
}

export function toAnswer(answer: Answer, { model, loadMs }: Label, place: Place): object {
  const calls = wireToolCalls(answer.toolCalls, answer.reason);
  const content = {
    text: answer.text,
    ...(answer.reasoning !== "" && { thinking: answer.reasoning }),
    ...(calls.length > 0 && { tool_calls: calls }),
  };
  return {
    ...labeled(model),
    ...place(content),
    ...logprobFields(answer.logprobs),
    done: true,
    ...summary(answer, loadMs),
  };
}

/** Returns the answer to a request without a prompt. */
export function toLoadAnswer(reason: ResidencyReason, model: string, place: Place): object {
  return { ...labeled(model), ...place({ text: "" }), done: true, done_reason: reason };
}

/** Yields one line per chunk, one with the tool calls, and one without content that has the statistics. */
export async function* toLines(
  events: AsyncIterable<InferenceEvent>,
  { model, loadMs }: Label,
  place: Place,
): AsyncGenerator<string, void, undefined> {
  const delta = (content: Partial<Content>, more: object = {}): string =>
    ndjsonLine({ ...labeled(model), ...place({ text: "", ...content }), ...more, done: false });
  const calls: ToolCall[] = [];
  for await (const event of joinToolCalls(events)) {
    switch (event.type) {
      case "start":
      case "prompt-progress":
        break;
      case "text-delta":
        yield delta({ text: event.text }, logprobFields(event.logprobs));
        break;
      case "reasoning-delta":
        yield delta({ thinking: event.text });
        break;
      case "tool-call":
        calls.push(event.call);
        break;
      case "done": {
        const wire = wireToolCalls(calls, event.reason);
        if (wire.length > 0) yield delta({ tool_calls: wire });
        yield ndjsonLine({
          ...labeled(model),
          ...place({ text: "" }),
          done: true,
          ...summary(event, loadMs),
        });
      }
    }
  }
}
