import type { Logger } from "pino";
import { MAX_PREFIX_TOKENS } from "../engine/protocol/generation.ts";
import type { ErrorCode } from "../errors/error-codes.ts";
import { ServiceError, toError } from "../errors/service-error.ts";
import type { Deadline } from "../inference/deadline.ts";
import type {
  AnswerFailovers,
  Continuation,
  GeneratedTokens,
  InferenceEvent,
  InferenceStream,
} from "../inference/inference.ts";
import type { RequestAccount } from "../inference/request-accounting.ts";
import type { Metrics } from "../metrics/metrics.ts";
import { MachineLost } from "./remote-calls.ts";
import { AnswerDiffers, type Transcript } from "./transcript.ts";

type DoneEvent = Extract<InferenceEvent, { type: "done" }>;

/** Maximum moves of an answer; a request that loses more machines probably crashes them. */
const MAX_MOVES = 5;

/** Answer that a machine is generating. */
export interface RunningAnswer {
  readonly stream: InferenceStream;
  /** Name of the machine. */
  readonly machine: string;
  /** Stops the answer on its machine. */
  readonly stop: () => void;
}

interface FailoverAnswerOptions {
  readonly first: RunningAnswer;
  /** Begins the answer again on a suitable machine, from the known tokens. */
  readonly restart: () => Promise<RunningAnswer>;
  readonly transcript: Transcript;
  readonly tokens: Pick<AnswerTokens, "replaced" | "continuation">;
  readonly account: RequestAccount;
  readonly metrics: Pick<Metrics, "answerMoved">;
  readonly deadline: Deadline;
  /** Aborts when the client disconnects. */
  readonly signal: AbortSignal;
  /** Resources of the request. */
  readonly resources: Disposable;
  readonly logger: Logger;
}

/**
 * Events of an answer that survives the loss of its machine: another machine continues from the known tokens, or
 * generates the answer again, and parts that the client has already received are skipped.
 */
export class FailoverAnswer implements AsyncIterableIterator<InferenceEvent, undefined> {
  readonly #options: FailoverAnswerOptions;
  readonly #events: AsyncGenerator<InferenceEvent, undefined, undefined>;
  #answer: RunningAnswer;
  #moves = 0;
  /** Time of the first output. */
  #firstAt: number | undefined;
  #isOver = false;
  #isAbandoned = false;

  constructor(options: FailoverAnswerOptions) {
    this.#options = options;
    this.#answer = options.first;
    this.#events = this.#run();
    // The deadline may expire while nobody reads, or while the machine began.
    const { signal } = options.deadline;
    const onAbort = (): void => this.#end(signal.reason);
    if (signal.aborted) onAbort();
    else signal.addEventListener("abort", onAbort, { once: true });
  }

  next(): Promise<IteratorResult<InferenceEvent, undefined>> {
    return this.#events.next();
  }

  /** Ends the answer because the reader stops. */
  async return(): Promise<IteratorResult<InferenceEvent, undefined>> {
    this.#isAbandoned = true;
    this.#end(undefined);
    // The answer may be waiting for another machine.
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
        for await (const event of this.#answer.stream.events) {
          const fresh = transcript.newPart(event);
          if (!fresh) continue;
          yield fresh.type === "done" ? this.#finish(fresh) : this.#count(fresh);
          if (fresh.type === "done") return undefined;
        }
      } catch (error) {
        failure = deadline.signal.aborted ? deadline.signal.reason : error;
      }
      if (!this.#isOver) await this.#move(failure ?? new MachineLost("it ends before it is complete"));
    } while (!this.#isOver);
    if (!this.#isAbandoned) deadline.signal.throwIfAborted();
    return undefined;
  }

  /** Continues on another machine. @throws the error if no other machine can help */
  async #move(error: unknown): Promise<void> {
    const { restart, transcript, tokens, deadline, logger, account } = this.#options;
    this.#answer.stop();
    this.#moves += 1;
    if (deadline.signal.aborted || !mayWorkOnAnother(error) || this.#moves > MAX_MOVES) {
      this.#end(clientError(error));
      throw clientError(error);
    }
    const { model } = this.#answer.stream;
    const of = { request_id: account.observer.request, model };
    const lost = { ...of, machine: this.#answer.machine, why: toError(error).message };
    logger.warn(lost, "fleet: the machine of an answer is lost; looking for another one");
    transcript.rewind();
    const known = tokens.continuation.given?.length ?? 0;
    try {
      this.#answer = await restart();
      if (this.#isOver) this.#answer.stop();
      else
        logger.info(
          { ...of, machine: this.#answer.machine, tokens: known },
          "fleet: another machine continues an answer",
        );
    } catch (failure) {
      if (this.#isOver) return;
      const reported = deadline.signal.aborted ? deadline.signal.reason : clientError(failure);
      this.#end(reported);
      throw reported;
    }
  }

  #count(event: InferenceEvent): InferenceEvent {
    const { account } = this.#options;
    if (event.type === "prompt-progress") account.promptComputed(event.processed, event.total);
    else if (event.type !== "start" && event.type !== "tool-call-start") {
      this.#firstAt ??= performance.now();
      account.token();
    }
    return event;
  }

  #finish(done: DoneEvent): InferenceEvent {
    const { account, resources } = this.#options;
    this.#isOver = true;
    this.#answer.stop();
    resources[Symbol.dispose]();
    const { limitedBy } = done;
    if (this.#moves === 0) return { ...account.generated(done), limitedBy };
    // The last machine reports only its own time.
    const completionMs = performance.now() - (this.#firstAt ?? performance.now());
    const finalEvent = { ...done, timings: { ...done.timings, completionMs } };
    return { ...account.generated(finalEvent), limitedBy, moved: this.#reportMoves() };
  }

  #reportMoves(): AnswerFailovers {
    const { metrics, logger, tokens } = this.#options;
    const moved = { times: this.#moves, otherTokens: tokens.replaced };
    metrics.answerMoved(moved.otherTokens === 0);
    if (moved.otherTokens > 0)
      logger.warn(
        { model: this.#answer.stream.model, ...moved },
        "fleet: an answer was continued differently than one machine would have continued it",
      );
    return moved;
  }

  /** Ends the answer before it is complete. */
  #end(error: unknown): void {
    if (this.#isOver) return;
    this.#isOver = true;
    const { account, resources, signal } = this.#options;
    this.#answer.stop();
    resources[Symbol.dispose]();
    account.failed(error, signal);
  }
}

/** Errors caused by the machine rather than the request: another machine may succeed. */
const MACHINE_ERRORS: ReadonlySet<ErrorCode> = new Set<ErrorCode>([
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

/** Returns true if another machine may succeed after this failure. */
export function mayWorkOnAnother(error: unknown): boolean {
  return isMachineLost(error) || (error instanceof ServiceError && MACHINE_ERRORS.has(error.code));
}

/** Returns true if the machine was lost during the answer. */
export function isMachineLost(error: unknown): boolean {
  return error instanceof MachineLost || error instanceof AnswerDiffers;
}

/** Converts the error of the last machine to the error for the client. */
export function clientError(error: unknown): unknown {
  if (error instanceof AnswerDiffers)
    return machineGoneError("the others would continue it differently", error);
  return error instanceof MachineLost ? machineGoneError("no other one continues the answer", error) : error;
}

/** Returns the error of a request that no other machine continued in time. */
export function notContinuedError(cause: unknown): ServiceError {
  return machineGoneError("no other one with the same model and engine could continue in time", cause);
}

function machineGoneError(why: string, cause: unknown): ServiceError {
  return new ServiceError("inference_failed", `The machine that answered is gone, and ${why}; try again.`, {
    cause,
  });
}

/**
 * Token ids of an answer, as its machines report them before the text of each. Another machine continues from them: it
 * reports them again, and then new ones.
 */
export class AnswerTokens {
  readonly #ids: number[] = [];
  /** Number of tokens that the current machine has reported. */
  #reported = 0;
  #replaced = 0;
  #failedTries = 0;

  /** Number of tokens that the continuing machines would have chosen differently. */
  get replaced(): number {
    return this.#replaced;
  }

  /** Continuation on the next machine, which begins anew if no tokens are known. */
  get continuation(): Continuation {
    const isKnown = this.#ids.length > 0 && this.#ids.length <= MAX_PREFIX_TOKENS;
    return {
      ...(isKnown && { given: [...this.#ids] }),
      failedTries: this.#failedTries,
      onTokenIds: (tokens) => this.add(tokens),
    };
  }

  /** Prepares for another machine, which reports all tokens again. */
  rewind(): void {
    this.#reported = 0;
  }

  add({ ids, replaced, failedTries = 0 }: GeneratedTokens): void {
    if (failedTries !== this.#failedTries) this.#reset(failedTries);
    this.#replaced += replaced;
    for (const id of ids) {
      // A machine that began anew may choose other tokens.
      if (this.#ids[this.#reported] !== id) this.#ids.length = this.#reported;
      // One token beyond the limit marks the sequence as too long to continue.
      if (this.#ids.length > MAX_PREFIX_TOKENS) return;
      this.#ids[this.#reported] = id;
      this.#reported += 1;
    }
  }

  /** Drops the tokens, because the answer is generated anew after it did not fit. */
  #reset(failedTries: number): void {
    this.#failedTries = failedTries;
    this.#ids.length = 0;
    this.#reported = this.#replaced = 0;
  }
}
