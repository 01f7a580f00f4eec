import type { Logger } from "pino";
import { toError } from "../errors/to-error.ts";
import type { Deadline } from "../inference/deadline.ts";
import type { AnswerMoves, InferenceEvent, InferenceStream } from "../inference/inference.ts";
import type { RequestAccount } from "../inference/request-accounting.ts";
import type { Metrics } from "../metrics/metrics.ts";
import type { AnswerTokens } from "./answer-tokens.ts";
import { mayWorkElsewhere, toClient } from "./answers-elsewhere.ts";
import { MachineLost } from "./remote-calls.ts";
import type { Transcript } from "./transcript.ts";

type DoneEvent = Extract<InferenceEvent, { type: "done" }>;

/** Moves of one answer: what moves more often is itself what ends machines. */
const MOST_MOVES = 5;

/** An answer that a machine is giving. */
export interface Giving {
  readonly stream: InferenceStream;
  /** Who gives it, as people call it. */
  readonly machine: string;
  /** It needs no more of it. */
  readonly leave: () => void;
}

interface MovingAnswerOptions {
  readonly first: Giving;
  /** Has the answer begun again, on another machine if there is one, from the tokens that are known. */
  readonly again: () => Promise<Giving>;
  readonly transcript: Transcript;
  readonly tokens: Pick<AnswerTokens, "replaced" | "begun">;
  readonly account: RequestAccount;
  readonly metrics: Pick<Metrics, "answerMoved">;
  readonly deadline: Deadline;
  /** Of the client. */
  readonly signal: AbortSignal;
  /** Ends what the request holds. */
  readonly held: Disposable;
  readonly logger: Logger;
}

/**
 * The events of an answer that goes on when the machine that gives it is gone: another one begins with the tokens that are known,
 * or gives all of it again, and what the client has is left out.
 */
export class MovingAnswer implements AsyncIterableIterator<InferenceEvent, undefined> {
  readonly #options: MovingAnswerOptions;
  readonly #events: AsyncGenerator<InferenceEvent, undefined, undefined>;
  #giving: Giving;
  #moves = 0;
  /** When the client got the first piece. */
  #firstAt: number | undefined;
  #isOver = false;
  #isLeft = false;

  constructor(options: MovingAnswerOptions) {
    this.#options = options;
    this.#giving = options.first;
    this.#events = this.#run();
    // It may abort while nobody reads, and may have done so while the machine began.
    const { signal } = options.deadline;
    const onAbort = (): void => this.#end(signal.reason);
    if (signal.aborted) onAbort();
    else signal.addEventListener("abort", onAbort, { once: true });
  }

  next(): Promise<IteratorResult<InferenceEvent, undefined>> {
    return this.#events.next();
  }

  /** The reader leaves. */
  async return(): Promise<IteratorResult<InferenceEvent, undefined>> {
    this.#isLeft = true;
    this.#end(undefined);
    // It may be waiting for another machine.
    this.#options.deadline.abort(new Error("the reader has left"));
    return await this.#events.return(undefined);
  }

  [Symbol.asyncIterator](): this {
    return this;
  }

  async *#run(): AsyncGenerator<InferenceEvent, undefined, undefined> {
    const { transcript, deadline } = this.#options;
    do {
      let failure: unknown;
      try {
        for await (const event of this.#giving.stream.events) {
          const fresh = transcript.take(event);
          if (!fresh) continue;
          yield fresh.type === "done" ? this.#finish(fresh) : this.#count(fresh);
          if (fresh.type === "done") return undefined;
        }
      } catch (error) {
        failure = deadline.signal.aborted ? deadline.signal.reason : error;
      }
      if (!this.#isOver) await this.#move(failure ?? new MachineLost("it ends before it is complete"));
    } while (!this.#isOver);
    if (!this.#isLeft) deadline.signal.throwIfAborted();
    return undefined;
  }

  /** @throws the error, if another machine cannot help */
  async #move(error: unknown): Promise<void> {
    const { again, transcript, tokens, deadline, logger, account } = this.#options;
    this.#giving.leave();
    this.#moves += 1;
    if (deadline.signal.aborted || !mayWorkElsewhere(error) || this.#moves > MOST_MOVES) {
      this.#end(toClient(error));
      throw toClient(error);
    }
    const { model } = this.#giving.stream;
    const of = { request_id: account.follower.request, model };
    const lost = { ...of, machine: this.#giving.machine, why: toError(error).message };
    logger.warn(lost, "fleet: an answer has lost its machine, and looks for another one");
    transcript.rewind();
    const known = tokens.begun.given?.length ?? 0;
    try {
      this.#giving = await again();
      if (this.#isOver) this.#giving.leave();
      else logger.info({ ...of, machine: this.#giving.machine, tokens: known }, "fleet: an answer goes on");
    } catch (failure) {
      if (this.#isOver) return;
      const told = deadline.signal.aborted ? deadline.signal.reason : toClient(failure);
      this.#end(told);
      throw told;
    }
  }

  #count(event: InferenceEvent): InferenceEvent {
    const { account } = this.#options;
    if (event.type === "prompt-progress") account.prompted(event.processed, event.total);
    else if (event.type !== "start" && event.type !== "tool-call-start") {
      this.#firstAt ??= performance.now();
      account.token();
    }
    return event;
  }

  #finish(done: DoneEvent): InferenceEvent {
    const { account, held } = this.#options;
    this.#isOver = true;
    this.#giving.leave();
    held[Symbol.dispose]();
    const { limitedBy } = done;
    if (this.#moves === 0) return { ...account.generated(done), limitedBy };
    // The machine's own time is that of the rest alone.
    const completionMs = performance.now() - (this.#firstAt ?? performance.now());
    const whole = { ...done, timings: { ...done.timings, completionMs } };
    return { ...account.generated(whole), limitedBy, moved: this.#tellMoves() };
  }

  #tellMoves(): AnswerMoves {
    const { metrics, logger, tokens } = this.#options;
    const moved = { times: this.#moves, otherTokens: tokens.replaced };
    metrics.answerMoved(moved.otherTokens === 0);
    if (moved.otherTokens > 0)
      logger.warn(
        { model: this.#giving.stream.model, ...moved },
        "fleet: an answer went on otherwise than one machine would have said it",
      );
    return moved;
  }

  /** It ends before it is complete. */
  #end(error: unknown): void {
    if (this.#isOver) return;
    this.#isOver = true;
    const { account, held, signal } = this.#options;
    this.#giving.leave();
    held[Symbol.dispose]();
    account.failed(error, signal);
  }
}
