import type {
  AnswerLimit,
  FinishReason,
  GenerationDetails,
  GenerationEvent,
  Timings,
  TokenLogprob,
  ToolCall,
  Usage,
} from "../engine/protocol/generation.ts";
import { ServiceError } from "../errors/service-error.ts";
import type { AnswerFailovers, Inference, InferenceEvent, InferenceRequest } from "./inference.ts";

/** Complete answer, collected from a stream of events. */
export interface Answer {
  readonly text: string;
  readonly reasoning: string;
  readonly toolCalls: readonly ToolCall[];
  /** Log-probabilities of the text's tokens; empty if not requested. */
  readonly logprobs: readonly TokenLogprob[];
  readonly reason: FinishReason;
  readonly stopSequence: string | undefined;
  /** Limit that truncated the answer. */
  readonly limitedBy?: AnswerLimit | undefined;
  readonly moved?: AnswerFailovers | undefined;
  readonly usage: Usage;
  readonly timings: Timings;
  /** Milliseconds from the request's arrival to its end, including queueing. */
  readonly totalMs: number;
  readonly tokensPerSecond: number;
  /** Set if the request asked for details. */
  readonly details?: GenerationDetails | undefined;
}

/**
 * Collects a stream into the complete answer.
 * @throws errors of the stream, and ServiceError inference_failed if it ends without `done`
 */
export async function collectAnswer(events: AsyncIterable<InferenceEvent>): Promise<Answer> {
  const fold = new AnswerFold();
  for await (const event of events) fold.add(event);
  return fold.finish();
}

/** Incremental form of {@link collectAnswer}: takes one event at a time. */
export class AnswerFold {
  readonly #text: string[] = [];
  readonly #reasoning: string[] = [];
  readonly #logprobs: TokenLogprob[] = [];
  readonly #calls = new CallFold();
  #done: Extract<InferenceEvent, { type: "done" }> | undefined;

  add(event: InferenceEvent): void {
    switch (event.type) {
      case "text-delta":
        this.#text.push(event.text);
        this.#logprobs.push(...(event.logprobs ?? []));
        break;
      case "reasoning-delta":
        this.#reasoning.push(event.text);
        break;
      case "done":
        this.#done = event;
        break;
      default:
        this.#calls.add(event);
    }
  }

  /** @throws ServiceError inference_failed if there was no `done` event */
  finish(): Answer {
    const done = this.#done;
    if (!done) throw incomplete("it ended without its last event");
    return {
      text: this.#text.join(""),
      reasoning: this.#reasoning.join(""),
      toolCalls: this.#calls.calls,
      logprobs: this.#logprobs,
      reason: done.reason,
      stopSequence: done.stopSequence,
      ...(done.limitedBy && { limitedBy: done.limitedBy }),
      ...(done.moved && { moved: done.moved }),
      usage: done.usage,
      timings: done.timings,
      totalMs: done.totalMs,
      tokensPerSecond: done.tokensPerSecond,
      ...(done.details && { details: done.details }),
    };
  }
}

/** Joins the events of tool calls. */
export class CallFold {
  readonly #calls = new Map<number, ToolCall>();

  /** Calls so far, in order. */
  get calls(): ToolCall[] {
    return [...this.#calls.values()];
  }

  /** Takes any event of an answer. */
  add(event: InferenceEvent | GenerationEvent): void {
    if (event.type === "tool-call-start")
      this.#calls.set(event.index, { id: event.id, name: event.name, arguments: "" });
    if (event.type !== "tool-call-delta") return;
    const call = this.#calls.get(event.index);
    if (!call) throw incomplete(`a part of tool call ${event.index} came before its start`);
    call.arguments += event.arguments;
  }
}

function incomplete(problem: string): ServiceError {
  return new ServiceError("inference_failed", `The model's answer is incomplete: ${problem}.`);
}

type JoinedCallEvent =
  | Exclude<InferenceEvent, { type: "tool-call-start" | "tool-call-delta" }>
  | { type: "tool-call"; call: ToolCall };

/**
 * Joins the deltas of each tool call into one event, for APIs that send complete calls. The calls come just before
 * `done`, because any of them may grow until then.
 */
export async function* joinToolCalls(
  events: AsyncIterable<InferenceEvent>,
): AsyncGenerator<JoinedCallEvent, void, undefined> {
  const fold = new CallFold();
  for await (const event of events) {
    if (event.type === "tool-call-start" || event.type === "tool-call-delta") {
      fold.add(event);
      continue;
    }
    if (event.type === "done") for (const call of fold.calls) yield { type: "tool-call", call };
    yield event;
  }
}

/**
 * Counts the tokens of a request's prompt, including template, tools and images. Starts the request and cancels it at
 * llama.cpp's first progress report, which has the exact number and comes before most of a long prompt is computed.
 * Takes a slot for that time.
 */
export async function countTokens(
  inference: Pick<Inference, "generate">,
  request: InferenceRequest,
  signal: AbortSignal,
): Promise<number> {
  const { events } = await inference.generate({ ...request, maxTokens: 1 }, signal);
  let tokens = 0;
  for await (const event of events) {
    if (event.type === "prompt-progress") return event.total;
    if (event.type === "done") tokens = event.usage.promptTokens;
  }
  return tokens;
}
