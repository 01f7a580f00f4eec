import { ServiceError } from "../../errors/service-error.ts";
import {
  ANSWER_PROGRESS_TOKENS,
  type Figures,
  type FinishReason,
  type GenerationDetails,
  type GenerationEvent,
  type GenerationRequest,
  type OutputFormat,
  type TokenLogprob,
} from "../protocol/generation.ts";
import { unreadableAnswer } from "./engine-failure.ts";
import {
  type AcceptedResult,
  type SampledTokens,
  type ChunkDelta,
  type ChunkLogprob,
  type ChunkToken,
  type CompletionChunk,
  completionResultSchema,
} from "./loop-request.ts";
import type { ContextShare } from "./shared-context.ts";

/** Converts llama.cpp's results of one generation into events. */
export class AnswerReader {
  readonly #request: GenerationRequest;
  readonly #share: ContextShare | undefined;
  readonly #onEvent: (event: GenerationEvent) => void;
  readonly #chunks: ChunkReader;
  readonly #depth: AnswerDepthCheck;
  #isStarted = false;
  #lastResultWasLost = false;
  #reported = 0;
  /** True if the answer was ended because the shared context is full. */
  contextIsFull = false;

  /** @param share its share of a context that several slots use; absent: the slot has its own context */
  constructor(
    request: GenerationRequest,
    share: ContextShare | undefined,
    onEvent: (event: GenerationEvent) => void,
  ) {
    this.#request = request;
    this.#share = share;
    this.#onEvent = onEvent;
    this.#chunks = new ChunkReader(request);
    this.#depth = new AnswerDepthCheck(request.format);
  }

  /**
   * Handles one result. Throws if the generation has to end.
   * @param sampled tokens since the last result, if the request has a number
   */
  receive(result: AcceptedResult, sampled?: SampledTokens): void {
    if (!this.#isStarted) this.#onEvent({ type: "start" });
    this.#isStarted = true;
    // Sent before their text, so that the receiver knows the tokens of every text that it has.
    if (sampled && this.#request.reportsTokens) this.#onEvent({ type: "tokens", ...sampled });
    this.#lastResultWasLost = result.kind === "unreadable";
    if (this.#lastResultWasLost) this.#onEvent(this.#chunks.lostText());
    if (result.kind === "accepted") return;
    const chunks = result.kind === "data" ? completionResultSchema.parse(result.data) : [];
    for (const chunk of chunks) {
      for (const event of this.#chunks.push(chunk)) {
        this.#depth.check(event);
        this.#onEvent(event);
      }
    }
    if (!this.#share) return;
    this.contextIsFull = !this.#share.update(chunks);
    if (this.contextIsFull) throw new Error("the context is full");
    const { tokens } = this.#share;
    if (tokens - this.#reported < ANSWER_PROGRESS_TOKENS) return;
    this.#reported = tokens;
    this.#onEvent(this.#chunks.progress(tokens));
  }

  finish(): void {
    const done = this.#chunks.finish();
    if (this.contextIsFull) return this.#onEvent({ ...done, reason: "length" });
    // The lost result may have been an error: if an answer violates its grammar, llama.cpp's message quotes the answer.
    if (this.#lastResultWasLost && this.#request.format.type !== "text") throw unreadableAnswer();
    this.#onEvent(done);
  }
}

type DoneEvent = Extract<GenerationEvent, { type: "done" }>;

/** Replaces bytes that are not valid UTF-8. */
const REPLACEMENT_CHARACTER = "\uFFFD";

/** Converts the chunks of one answer of llama.cpp's server into events. */
class ChunkReader {
  readonly #request: GenerationRequest;
  readonly #toolCalls = new Set<number>();
  #reason: FinishReason | undefined;
  #stopSequence: string | undefined;
  #deltas = 0;
  #reasoningTokens = 0;
  #promptTokens = 0;
  #details: GenerationDetails | undefined;
  #usage: CompletionChunk["usage"];
  #timings: CompletionChunk["timings"];

  constructor(request: GenerationRequest) {
    this.#request = request;
  }

  *push(chunk: CompletionChunk): Generator<GenerationEvent> {
    if (chunk.usage) this.#usage = chunk.usage;
    if (chunk.timings) this.#timings = chunk.timings;
    const verbose = chunk["__verbose"];
    if (verbose?.stopping_word) this.#stopSequence = verbose.stopping_word;
    if (verbose?.prompt !== undefined) this.#details = detailsOf(verbose);
    if (chunk.prompt_progress) {
      const { processed, total, cache, time_ms: elapsedMs } = chunk.prompt_progress;
      this.#promptTokens = total;
      yield {
        type: "prompt-progress",
        processed,
        total,
        ...(cache !== undefined && { cached: cache }),
        ...(elapsedMs !== undefined && { elapsedMs }),
      };
      return;
    }
    const choice = chunk.choices?.[0];
    if (!choice) return;
    const delta: ChunkDelta = choice.delta ?? { content: choice.text ?? null };
    const logprobs = choice.logprobs?.content?.map((entry) => this.#logprob(entry));
    yield* this.#delta(delta, logprobs);
    if (choice.finish_reason) this.#reason = finishReason(choice.finish_reason);
  }

  /** Returns the event for text that was lost because it was not valid UTF-8. */
  lostText(): GenerationEvent {
    this.#deltas += 1;
    return { type: "text-delta", text: REPLACEMENT_CHARACTER };
  }

  /** Returns the last event. If the final chunk was lost, the figures are derived from the other chunks. */
  finish(): DoneEvent {
    const { usage, timings } = this.#soFar();
    const isFull = usage.completionTokens >= (this.#request.maxTokens ?? Number.POSITIVE_INFINITY);
    return {
      type: "done",
      reason: this.#reason ?? (isFull ? "length" : "stop"),
      ...(this.#stopSequence !== undefined && { stopSequence: this.#stopSequence }),
      usage,
      timings,
      ...(this.#request.details && this.#details && { details: this.#details }),
    };
  }

  /** Returns an event with the figures so far. @param completionTokens count that includes tokens without text */
  progress(completionTokens: number): GenerationEvent {
    const { usage, timings } = this.#soFar();
    return { type: "answer-progress", usage: { ...usage, completionTokens }, timings };
  }

  /** Returns the figures so far as fields of a delta, if the request asks for timings. */
  #requestedFigures(): { soFar?: Figures } {
    return this.#request.timings && this.#timings ? { soFar: this.#soFar() } : {};
  }

  #soFar(): Figures {
    const {
      prompt_ms = 0,
      predicted_ms = 0,
      predicted_n,
      cache_n,
      draft_n,
      draft_n_accepted,
    } = this.#timings ?? {};
    const completionTokens = this.#usage?.completion_tokens ?? predicted_n ?? this.#deltas;
    return {
      usage: {
        promptTokens: this.#usage?.prompt_tokens ?? this.#promptTokens,
        completionTokens,
        cachedTokens: this.#usage?.prompt_tokens_details?.cached_tokens ?? cache_n ?? 0,
        reasoningTokens: Math.min(this.#reasoningTokens, completionTokens),
        // llama.cpp also counts prefix tokens as drafted tokens.
        ...(draft_n && !this.#request.given && { guesses: { tokens: draft_n, kept: draft_n_accepted ?? 0 } }),
      },
      timings: { promptMs: Math.max(0, prompt_ms), completionMs: Math.max(0, predicted_ms) },
    };
  }

  *#delta(delta: ChunkDelta, logprobs: TokenLogprob[] | undefined): Generator<GenerationEvent> {
    if (delta.reasoning_content) {
      this.#deltas += 1;
      this.#reasoningTokens += 1;
      yield { type: "reasoning-delta", text: delta.reasoning_content, ...this.#requestedFigures() };
    }
    if (delta.content || logprobs?.length) {
      this.#deltas += 1;
      yield {
        type: "text-delta",
        text: delta.content ?? "",
        ...(logprobs && { logprobs }),
        ...this.#requestedFigures(),
      };
    }
    for (const call of delta.tool_calls ?? []) {
      const index = call.index ?? 0;
      if (!this.#toolCalls.has(index)) {
        this.#toolCalls.add(index);
        const id = call.id || `call_${crypto.randomUUID().replaceAll("-", "")}`;
        const soFar = index > 0 && this.#timings ? { soFar: this.#soFar() } : {};
        yield { type: "tool-call-start", index, id, name: call.function?.name ?? "", ...soFar };
      }
      const text = call.function?.arguments;
      if (text) yield { type: "tool-call-delta", index, arguments: text, ...this.#requestedFigures() };
    }
  }

  #logprob(entry: ChunkToken): TokenLogprob {
    return {
      ...plainLogprob(entry),
      // Raw completions always contain at least one alternative.
      top: (entry.top_logprobs ?? []).slice(0, this.#request.logprobs ?? 0).map(plainLogprob),
    };
  }
}

/** Reads the details of a generation, which are only complete in the last chunk. */
function detailsOf({
  prompt = "",
  id_slot: slot = 0,
  tokens_cached: tokensInCache = 0,
  truncated = false,
}: NonNullable<CompletionChunk["__verbose"]>): GenerationDetails {
  return { prompt, slot, tokensInCache, truncated };
}

function plainLogprob({ id, token, logprob, bytes }: ChunkLogprob): Omit<TokenLogprob, "top"> {
  return { id, token, logprob, bytes: bytes ? [...bytes] : null };
}

function finishReason(reason: string): FinishReason {
  return reason === "length" || reason === "tool_calls" ? reason : "stop";
}

/**
 * Maximum nesting of JSON in an answer. The same as for requests, because clients send tool calls back. llama.cpp
 * parses the entire answer recursively after every token, so deeper nesting would overflow its stack and end the
 * engine.
 */
const MAX_ANSWER_DEPTH = 100;

/** Tracks the nesting of JSON that arrives in parts. */
class JsonDepth {
  #depth = 0;
  #isInString = false;
  #isEscaped = false;

  /** @returns the deepest level in this part */
  push(text: string): number {
    let deepest = this.#depth;
    for (const character of text) {
      if (this.#isInString) this.#readString(character);
      else if (character === '"') this.#isInString = true;
      else if (character === "[" || character === "{") deepest = Math.max(deepest, ++this.#depth);
      else if (character === "]" || character === "}") this.#depth -= 1;
    }
    return deepest;
  }

  #readString(character: string): void {
    if (this.#isEscaped) this.#isEscaped = false;
    else if (character === "\\") this.#isEscaped = true;
    else if (character === '"') this.#isInString = false;
  }
}

/** Checks the nesting of an answer while it is generated: of text that must be JSON, and of arguments of tool calls. */
class AnswerDepthCheck {
  readonly #text: JsonDepth | undefined;
  readonly #calls = new Map<number, JsonDepth>();

  constructor(format: OutputFormat) {
    const isJson = format.type === "grammar" ? format.isJson : format.type !== "text";
    if (isJson) this.#text = new JsonDepth();
  }

  /** @throws ServiceError inference_failed if the answer is nested too deeply */
  check(event: GenerationEvent): void {
    if (event.type === "text-delta") checkDepth(this.#text?.push(event.text));
    if (event.type !== "tool-call-delta") return;
    const call = this.#calls.get(event.index) ?? new JsonDepth();
    this.#calls.set(event.index, call);
    checkDepth(call.push(event.arguments));
  }
}

function checkDepth(depth = 0): void {
  if (depth <= MAX_ANSWER_DEPTH) return;
  throw new ServiceError(
    "inference_failed",
    `The model's answer is nested more than ${MAX_ANSWER_DEPTH} levels deep and was stopped: ` +
      "try again, or use a schema with less nesting.",
  );
}
