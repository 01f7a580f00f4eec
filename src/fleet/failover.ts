import type { Logger } from "pino";
import { MAX_GIVEN_TOKENS } from "../engine/protocol/generation.ts";
import type { ErrorCode } from "../errors/error-codes.ts";
import { ServiceError } from "../errors/service-error.ts";
import { toError } from "../errors/to-error.ts";
import type { Deadline } from "../inference/deadline.ts";
import type {
  AnswerMoves,
  ChosenTokens,
  InferenceEvent,
  InferenceRequest,
  InferenceStream,
} from "../inference/inference.ts";
import type { RequestAccount } from "../inference/request-accounting.ts";
import type { Metrics } from "../metrics/metrics.ts";
import { MachineLost } from "./remote-calls.ts";
import { AnswerDiffers, type Transcript } from "./transcript.ts";

type DoneEvent = Extract<InferenceEvent, { type: "done" }>;

/** Moves of one answer: what moves more often is itself what ends machines. */
const MAX_MOVES = 5;

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
    if (deadline.signal.aborted || !mayWorkOnAnother(error) || this.#moves > MAX_MOVES) {
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

/** Errors that come from a machine, not from the request: another machine may succeed. */
const OF_THE_MACHINE: ReadonlySet<ErrorCode> = new Set<ErrorCode>([
  "overloaded",
  "resources_exhausted",
  "insufficient_memory",
  "insufficient_disk",
  "cache_not_writable",
  "model_not_found",
  "model_not_loaded",
  "model_file_not_found",
  "model_loading",
  "model_load_failed",
  "model_busy",
  "gpu_unavailable",
  "sandbox_unavailable",
  "starting",
  "shutting_down",
  "engine_crashed",
]);

/** Whether it is worth asking another machine after this failure. */
export function mayWorkOnAnother(error: unknown): boolean {
  return isLost(error) || (error instanceof ServiceError && OF_THE_MACHINE.has(error.code));
}

/** Whether the one who answered is gone in the middle of it. */
export function isLost(error: unknown): boolean {
  return error instanceof MachineLost || error instanceof AnswerDiffers;
}

/** What the client is told when no machine is left. */
export function toClient(error: unknown): unknown {
  if (error instanceof AnswerDiffers) return broken("the others would continue otherwise", error);
  return error instanceof MachineLost ? broken("the answer goes on at no other one", error) : error;
}

/** No machine has taken over in time what was lost with its machine. */
export function notContinued(cause: unknown): ServiceError {
  return broken("no other one with the same model and engine could go on in time", cause);
}

function broken(why: string, cause: unknown): ServiceError {
  return new ServiceError("inference_failed", `The machine that answered is gone, and ${why}; try again.`, {
    cause,
  });
}

/**
 * The tokens of an answer, as the machines that give it tell them, before the text of each. Another machine goes on from them:
 * it says them again, and then what comes next.
 */
export class AnswerTokens {
  readonly #ids: number[] = [];
  /** How many of them the machine has told that gives the answer now. */
  #told = 0;
  #replaced = 0;
  #failedTries = 0;

  /** Those that have been replaced on the way: other ones would have been the choice of the machine that has gone on with them. */
  get replaced(): number {
    return this.#replaced;
  }

  /** What the next machine goes on from: the beginning, where no tokens are known. */
  get begun(): Pick<InferenceRequest, "given" | "failedTries"> {
    const failedTries = this.#failedTries;
    const isKnown = this.#ids.length > 0 && this.#ids.length <= MAX_GIVEN_TOKENS;
    return { failedTries, ...(isKnown && { given: [...this.#ids] }) };
  }

  /** Another machine gives the answer, which tells all tokens again. */
  rewind(): void {
    this.#told = 0;
  }

  take({ ids, replaced, failedTries = 0 }: ChosenTokens): void {
    if (failedTries !== this.#failedTries) this.#beginAgain(failedTries);
    this.#replaced += replaced;
    for (const id of ids) {
      // One that has not gone on from these tokens, but begun again, may say others.
      if (this.#ids[this.#told] !== id) this.#ids.length = this.#told;
      // One more than can be given says that there are too many.
      if (this.#ids.length > MAX_GIVEN_TOKENS) return;
      this.#ids[this.#told] = id;
      this.#told += 1;
    }
  }

  /** An answer did not fit, and another one is generated, of which nothing is known. */
  #beginAgain(failedTries: number): void {
    this.#failedTries = failedTries;
    this.#ids.length = 0;
    this.#told = this.#replaced = 0;
  }
}
