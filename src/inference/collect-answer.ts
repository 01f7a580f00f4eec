import type { FinishReason, Timings, TokenLogprob, ToolCall, Usage } from "../engine/protocol/generation.ts";
import { ServiceError } from "../errors/service-error.ts";
import type { InferenceEvent } from "./inference.ts";

/** A whole answer: the fold of a stream of events. */
export interface Answer {
  readonly text: string;
  readonly reasoning: string;
  readonly toolCalls: readonly ToolCall[];
  /** Of the text's tokens; empty when none were asked for. */
  readonly logprobs: readonly TokenLogprob[];
  readonly reason: FinishReason;
  readonly stopSequence: string | undefined;
  readonly usage: Usage;
  readonly timings: Timings;
  /** Milliseconds from the request's arrival to its end, queueing included. */
  readonly totalMs: number;
  readonly tokensPerSecond: number;
}

/**
 * Folds a stream into the whole answer that it makes up. Throws what the stream throws, and
 * `inference_failed` when it ends without `done`.
 */
export async function collectAnswer(events: AsyncIterable<InferenceEvent>): Promise<Answer> {
  let text = "";
  let reasoning = "";
  const logprobs: TokenLogprob[] = [];
  const toolCalls: ToolCall[] = [];
  for await (const event of events) {
    switch (event.type) {
      case "start":
      case "prompt-progress":
        break;
      case "text-delta":
        text += event.text;
        if (event.logprobs) logprobs.push(...event.logprobs);
        break;
      case "reasoning-delta":
        reasoning += event.text;
        break;
      case "tool-call-start":
        toolCalls[event.index] = { id: event.id, name: event.name, arguments: "" };
        break;
      case "tool-call-delta": {
        const call = toolCalls[event.index];
        if (!call) throw brokenStream(`a piece of tool call ${event.index} came before its start`);
        call.arguments += event.arguments;
        break;
      }
      case "done":
        return {
          text,
          reasoning,
          toolCalls: toolCalls.filter((call) => call !== undefined),
          logprobs,
          reason: event.reason,
          stopSequence: event.stopSequence,
          usage: event.usage,
          timings: event.timings,
          totalMs: event.totalMs,
          tokensPerSecond: event.tokensPerSecond,
        };
    }
  }
  throw brokenStream("it ended without its last event");
}

function brokenStream(what: string): ServiceError {
  return new ServiceError("inference_failed", `The model's answer is incomplete: ${what}.`);
}
