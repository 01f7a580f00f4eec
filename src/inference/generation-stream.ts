import { EventQueue } from "../async/event-queue.ts";
import type { Figures, GenerationEvent } from "../engine/protocol/generation.ts";
import { isTextDelta, type TextDelta } from "../engine/protocol/piece.ts";
import { ServiceError } from "../errors/service-error.ts";
import type { Deadline } from "./deadline.ts";
import { type EventReader, readAll } from "./stream-filters.ts";
import type { InferenceEvent } from "./inference.ts";

/** Bytes of events that may wait for a slow client: more than a context of 100,000 tokens produces. */
const MAX_WAITING_BYTES = 16 * 1024 * 1024;

/** Approximate memory of an event, and of each token of its log-probabilities. */
const EVENT_BYTES = 100;
const FIGURES_BYTES = 200;
const LOGPROB_BYTES = 400;
const ALTERNATIVE_BYTES = 150;

type DoneEvent = Extract<GenerationEvent, { type: "done" }>;
type PromptProgress = Extract<GenerationEvent, { type: "prompt-progress" }>;

interface GenerationStreamOptions {
  /** Runs the generation on its engine; settles when the engine has released it. */
  readonly run: (onEvent: (event: GenerationEvent) => void, signal: AbortSignal) => Promise<void>;
  /** The readers of the engine's events, in order. */
  readonly readers: readonly EventReader[];
  /** Ends the generation when the client disconnects or the time is up; aborted here when the reader leaves. */
  readonly deadline: Deadline;
  /** Everything the request holds; released once, as soon as the engine is done. */
  readonly held: Disposable;
  /** Called when the engine reports how much of the prompt it has computed. */
  readonly onPrompt: (progress: PromptProgress) => void;
  /** Called for each token that has text. */
  readonly onToken: () => void;
  /** Completes the last event; called once the generation is over. */
  readonly finish: (done: DoneEvent) => InferenceEvent;
  /** Called instead when it ends without one; the error is undefined when the reader has left. */
  readonly fail: (error: unknown) => void;
}

/**
 * One answer, from the engine's first event to the last one read. Everything the request holds is released exactly once, as
 * soon as the engine is done: after the last event, after an error, when the reader leaves (even before its first step),
 * and when the deadline aborts while nobody reads. The stream ends after `done`, or throws a ServiceError or the
 * deadline's reason.
 */
export class GenerationStream implements AsyncIterableIterator<InferenceEvent, undefined> {
  readonly #options: GenerationStreamOptions;
  readonly #events = new EventQueue<InferenceEvent>(MAX_WAITING_BYTES, bytesOf);
  readonly #over: Promise<void>;
  #done: DoneEvent | undefined;
  /** Of the last piece, if the request asks for them; readers may join and split pieces. */
  #soFar: Figures | undefined;
  #isLeft = false;

  private constructor(options: GenerationStreamOptions) {
    this.#options = options;
    this.#over = this.#run();
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

  /** The reader leaves: resolves when the engine is done. */
  async return(): Promise<IteratorResult<InferenceEvent, undefined>> {
    this.#events.clear();
    this.#isLeft = true;
    this.#options.deadline.abort(new Error("the reader has left"));
    await this.#over;
    return { done: true, value: undefined };
  }

  [Symbol.asyncIterator](): this {
    return this;
  }

  /** Never rejects. */
  async #run(): Promise<void> {
    const { run, deadline, held, finish, fail } = this.#options;
    let failure: unknown;
    try {
      await run((event) => this.#take(event), deadline.signal);
    } catch (error) {
      failure = deadline.signal.aborted ? deadline.signal.reason : error;
    }
    // The permit is released before the reader sees the end, so that the next request finds it free.
    held[Symbol.dispose]();
    if (!this.#done) {
      failure ??= incomplete();
      fail(this.#isLeft ? undefined : failure);
      this.#events.end(failure);
    } else if (this.#events.push(finish(this.#done))) this.#events.end();
    else this.#events.clear(readTooSlowly());
  }

  /** Reads an event of the engine; an event that cannot be read ends the answer. */
  #take(event: GenerationEvent): void {
    try {
      if (event.type === "prompt-progress") this.#options.onPrompt(event);
      else if (isTextDelta(event)) {
        this.#soFar = event.soFar ?? this.#soFar;
        this.#options.onToken();
      }
      for (const each of readAll([event], this.#options.readers)) this.#pass(each);
      // A reader may find the end before the engine does.
      if (this.#done && event.type !== "done")
        this.#options.deadline.abort(new Error("the answer is complete"));
    } catch (error) {
      this.#options.deadline.abort(error);
    }
  }

  #pass(event: GenerationEvent): void {
    if (this.#done || event.type === "answer-progress" || event.type === "tokens") return;
    if (event.type === "done") {
      this.#done = event;
    } else if (!this.#events.push(isTextDelta(event) ? this.#told(event) : event)) {
      const error = readTooSlowly();
      this.#events.clear(error);
      this.#options.deadline.abort(error);
    }
  }

  #told(piece: TextDelta): TextDelta {
    // Readers may have changed the text.
    const joined = piece.ends ? { ...piece, ends: undefined } : piece;
    return this.#soFar ? { ...joined, soFar: this.#soFar } : joined;
  }
}

function incomplete(): ServiceError {
  return new ServiceError("inference_failed", "The engine ended the answer before it was complete.");
}

function readTooSlowly(): ServiceError {
  return new ServiceError(
    "overloaded",
    "The answer was read so slowly that too much of it waited to be sent; read it faster, or ask for less of it.",
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
