import { EventQueue } from "../async/event-queue.ts";
import type { Figures, GenerationEvent } from "../engine/protocol/generation.ts";
import { isTextDelta, type TextDelta } from "../engine/protocol/text-delta.ts";
import { ServiceError } from "../errors/service-error.ts";
import type { Deadline } from "./deadline.ts";
import { type EventFilter, applyFilters } from "./stream-filters.ts";
import type { InferenceEvent } from "./inference.ts";

/** Most bytes of events buffered for a slow client: more than a context of 100,000 tokens produces. */
const MAX_WAITING_BYTES = 16 * 1024 * 1024;

/** Approximate memory of an event, and of each token of its log-probabilities. */
const EVENT_BYTES = 100;
const FIGURES_BYTES = 200;
const LOGPROB_BYTES = 400;
const ALTERNATIVE_BYTES = 150;

type DoneEvent = Extract<GenerationEvent, { type: "done" }>;
type PromptProgress = Extract<GenerationEvent, { type: "prompt-progress" }>;

interface GenerationStreamOptions {
  /** Runs the generation on its engine; settles when the engine is done with it. */
  readonly run: (onEvent: (event: GenerationEvent) => void, signal: AbortSignal) => Promise<void>;
  /** Filters of the engine's events, in order. */
  readonly filters: readonly EventFilter[];
  /** Ends the generation when the client disconnects or the time is up; aborted here when the reader stops. */
  readonly deadline: Deadline;
  /** Resources of the request, disposed once, as soon as the engine is done. */
  readonly resources: Disposable;
  /** Called when the engine reports prefill progress. */
  readonly onPrompt: (progress: PromptProgress) => void;
  /** Called for each token that has text. */
  readonly onToken: () => void;
  /** Completes the last event; called when the generation has ended. */
  readonly finish: (done: DoneEvent) => InferenceEvent;
  /** Called instead if there is no last event; the error is undefined if the reader has stopped. */
  readonly fail: (error: unknown) => void;
}

/**
 * Stream of one answer's events. The request's resources are disposed exactly once, as soon as the engine is done:
 * after the last event, after an error, when the reader stops (even before its first step), and when the deadline
 * aborts without a reader. The stream ends after `done`, or throws a ServiceError or the deadline's reason.
 */
export class GenerationStream implements AsyncIterableIterator<InferenceEvent, undefined> {
  readonly #options: GenerationStreamOptions;
  readonly #events = new EventQueue<InferenceEvent>(MAX_WAITING_BYTES, bytesOf);
  readonly #finished: Promise<void>;
  #done: DoneEvent | undefined;
  /** Usage and timings up to the last delta, if requested; filters may join and split deltas. */
  #soFar: Figures | undefined;
  #isAbandoned = false;

  private constructor(options: GenerationStreamOptions) {
    this.#options = options;
    this.#finished = this.#run();
  }

  /** Starts the generation. Resolves with its first event, or rejects if it fails before that. */
  static async begin(options: GenerationStreamOptions): Promise<GenerationStream> {
    const stream = new GenerationStream(options);
    await stream.#events.ready();
    return stream;
  }

  next(): Promise<IteratorResult<InferenceEvent, undefined>> {
    return this.#events.next();
  }

  /** Stops the generation; resolves when the engine is done. */
  async return(): Promise<IteratorResult<InferenceEvent, undefined>> {
    this.#events.clear();
    this.#isAbandoned = true;
    this.#options.deadline.abort(new Error("the reader has stopped"));
    await this.#finished;
    return { done: true, value: undefined };
  }

  [Symbol.asyncIterator](): this {
    return this;
  }

  /** Never rejects. */
  async #run(): Promise<void> {
    const { run, deadline, resources, finish, fail } = this.#options;
    let failure: unknown;
    try {
      await run((event) => this.#onEngineEvent(event), deadline.signal);
    } catch (error) {
      failure = deadline.signal.aborted ? deadline.signal.reason : error;
    }
    // The permit is released before the reader sees the end, so that its next request can have it.
    resources[Symbol.dispose]();
    if (!this.#done) {
      failure ??= incomplete();
      fail(this.#isAbandoned ? undefined : failure);
      this.#events.end(failure);
    } else if (this.#events.push(finish(this.#done))) this.#events.end();
    else this.#events.clear(readTooSlowly());
  }

  /** Filters an event of the engine; an error of a filter ends the answer. */
  #onEngineEvent(event: GenerationEvent): void {
    try {
      if (event.type === "prompt-progress") this.#options.onPrompt(event);
      else if (isTextDelta(event)) {
        this.#soFar = event.soFar ?? this.#soFar;
        this.#options.onToken();
      }
      for (const filtered of applyFilters([event], this.#options.filters)) this.#emit(filtered);
      // A filter may end the answer before the engine does.
      if (this.#done && event.type !== "done")
        this.#options.deadline.abort(new Error("the answer is complete"));
    } catch (error) {
      this.#options.deadline.abort(error);
    }
  }

  #emit(event: GenerationEvent): void {
    if (this.#done || event.type === "answer-progress" || event.type === "tokens") return;
    if (event.type === "done") {
      this.#done = event;
    } else if (!this.#events.push(isTextDelta(event) ? this.#withStats(event) : event)) {
      const error = readTooSlowly();
      this.#events.clear(error);
      this.#options.deadline.abort(error);
    }
  }

  #withStats(delta: TextDelta): TextDelta {
    // Filters may have changed the text.
    const joined = delta.ends ? { ...delta, ends: undefined } : delta;
    return this.#soFar ? { ...joined, soFar: this.#soFar } : joined;
  }
}

function incomplete(): ServiceError {
  return new ServiceError("inference_failed", "The engine ended the answer before it was complete.");
}

function readTooSlowly(): ServiceError {
  return new ServiceError(
    "overloaded",
    "The client read the answer so slowly that too much of it had to be buffered; read faster, or request less.",
  );
}

function bytesOf(event: InferenceEvent): number {
  const bytes = EVENT_BYTES + ("soFar" in event && event.soFar ? FIGURES_BYTES : 0);
  if (event.type === "reasoning-delta") return bytes + 2 * event.text.length;
  if (event.type === "tool-call-delta") return bytes + 2 * event.arguments.length;
  if (event.type !== "text-delta") return bytes;
  const tokens = event.logprobs ?? [];
  const alternatives = tokens.reduce((sum, { top }) => sum + top.length, 0);
  return bytes + 2 * event.text.length + LOGPROB_BYTES * tokens.length + ALTERNATIVE_BYTES * alternatives;
}
