import { setTimeout as sleep } from "node:timers/promises";
import type { Logger } from "pino";
import { z } from "zod";
import type { ErrorCode } from "../errors/error-codes.ts";
import { ServiceError } from "../errors/service-error.ts";
import { parseJsonText } from "../json/parse-json.ts";
import { tryJson } from "../json/json-values.ts";
import {
  type Batch,
  type BatchFormat,
  type BatchUsage,
  type LineResponse,
  newId,
  NO_USAGE,
  type RouteAnswer,
  type RunLine,
  type RunOutcome,
} from "./batch.ts";
import type { FileContents } from "./batch-store.ts";
import { type Attempt, retryDelay } from "./line-queue.ts";
import type { Retry } from "./line-scheduler.ts";

/** Delay before an answer is saved again after the disk was full. */
const SAVE_RETRY_MS = 5000;
/** Retry-After from which a refusal counts as long: a preempted line is sent back for one second only. */
const LONG_WAIT_SECS = 2;
const DEFAULT_RETRY_SECS = 1;
/** Consecutive refusals of one line before its batch is reported as waiting. */
const REFUSALS_BEFORE_WAITING = 2;
const FIRST_ERROR_STATUS = 400;

/** Fields that the errors of all APIs have. */
const refusalSchema = z.object({ error: z.object({ message: z.string(), code: z.string().nullish() }) });
/** Error of a model whose machine is unreachable: lines of other models may still run. */
const MODEL_SPECIFIC_ERROR: ErrorCode = "fleet_unreachable";

export interface LineRunnerOptions {
  /** Saves the answer to a line; returns false if the line has one already. */
  readonly saveAnswer: (
    number: number,
    outcome: RunOutcome,
    answer: RouteAnswer,
    usage: BatchUsage,
  ) => Promise<boolean>;
  readonly folder: Pick<FileContents, "text">;
  readonly runLine: RunLine;
  readonly logger: Pick<Logger, "warn">;
  readonly onLine: (outcome: RunOutcome) => void;
  readonly now: () => number;
}

/** Runs the lines of one batch. */
export class LineRunner {
  readonly #batch: Batch;
  readonly #format: BatchFormat;
  readonly #options: LineRunnerOptions;
  readonly #signal: AbortSignal;
  #waitingReason: string | undefined;

  /** @param signal aborts when no answers are needed any longer */
  constructor(batch: Batch, format: BatchFormat, options: LineRunnerOptions, signal: AbortSignal) {
    this.#batch = batch;
    this.#format = format;
    this.#options = options;
    this.#signal = signal;
  }

  /** Reason of repeated refusals since the last answer. */
  get waitingReason(): string | undefined {
    return this.#waitingReason;
  }

  /** Runs a line and saves its answer; resolves with the time of the next try, or undefined if the line is done. */
  async run(attempt: Attempt): Promise<Retry | undefined> {
    const { folder, now } = this.#options;
    const { number, start, length } = attempt.line;
    const text = await folder.text(this.#batch.inputFile, start, length).catch(fileNotFound);
    const requestId = newId("batch_req");
    if (this.#signal.aborted) return undefined;
    const { response, usage } = await this.#request(number, text, requestId);
    if (this.#signal.aborted) return undefined;
    const retryDelayMs = retryDelay(response, attempt);
    if (retryDelayMs !== undefined) {
      const refusal = refusalSchema.safeParse(tryJson(response.body)).data?.error;
      if (attempt.refusals >= REFUSALS_BEFORE_WAITING) this.#setWaiting(refusal?.message);
      const isLong = response.retryAfterSecs >= LONG_WAIT_SECS;
      return { at: now() + retryDelayMs, blocksAll: isLong && refusal?.code !== MODEL_SPECIFIC_ERROR };
    }
    this.#waitingReason = undefined;
    await this.#saveAnswer(number, requestId, response, usage);
    return undefined;
  }

  #setWaiting(message = "the daemon has no free slot or memory for it."): void {
    const reason = `waits: ${message}`;
    if (this.#waitingReason === undefined)
      this.#options.logger.warn({ batch: this.#batch.id }, `A batch ${reason}`);
    this.#waitingReason = reason;
  }

  /** Turns every failure of a line into an answer to that line: it must not stop its batch. */
  async #request(
    number: number,
    text: string | ServiceError,
    requestId: string,
  ): Promise<{ readonly response: LineResponse; readonly usage: BatchUsage }> {
    const { id, endpoint, owner } = this.#batch;
    const { runLine, logger } = this.#options;
    try {
      if (text instanceof ServiceError) throw text;
      const request = this.#format.request(await parseJsonText(text, "The line"), endpoint);
      const response = await runLine({ ...request, requestId, owner }, this.#signal);
      const hasSucceeded = response.status < FIRST_ERROR_STATUS;
      return { response, usage: hasSucceeded ? this.#format.usageOf(JSON.parse(response.body)) : NO_USAGE };
    } catch (cause) {
      const error = ServiceError.from(cause);
      if (!this.#signal.aborted)
        logger.warn({ batch: id, line: number, request_id: requestId, err: cause }, error.message);
      const { status, retryable, retryAfterSecs = DEFAULT_RETRY_SECS } = error;
      const body = this.#format.error(error, requestId);
      return { response: { status, body, retryable, retryAfterSecs }, usage: NO_USAGE };
    }
  }

  /** Saves an answer, again and again while the disk is full, so that it need not be computed again. */
  async #saveAnswer(
    number: number,
    requestId: string,
    { status, body }: LineResponse,
    usage: BatchUsage,
  ): Promise<void> {
    const { saveAnswer, logger, onLine } = this.#options;
    const outcome = status < FIRST_ERROR_STATUS ? "succeeded" : "errored";
    for (;;) {
      try {
        if (await saveAnswer(number, outcome, { status, requestId, body }, usage)) onLine(outcome);
        return;
      } catch (error) {
        const { code, message } = ServiceError.from(error);
        if (code !== "insufficient_disk" || this.#signal.aborted) throw error;
        logger.warn({ batch: this.#batch.id, line: number }, message);
        await sleep(SAVE_RETRY_MS, undefined, { signal: this.#signal, ref: false }).catch(() => undefined);
      }
    }
  }
}

/** Returns a missing input file as the answer to the line. @throws every other error, which may be temporary */
function fileNotFound(error: unknown): ServiceError {
  if (error instanceof ServiceError && error.code === "file_not_found") return error;
  throw error;
}
