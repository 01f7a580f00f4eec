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
  type RunLine,
  type RunOutcome,
  type WaitingLine,
} from "./batch.ts";
import type { BatchStore, FileContents } from "./batch-store.ts";
import { type Attempt, retryWait } from "./line-queue.ts";
import type { Retry } from "./line-scheduler.ts";

/** Before an answer is saved again that the disk had no room for. */
const SAVE_AGAIN_MS = 5000;
/** Who is only to give way for a moment is told to come back after a second. */
const LONG_WAIT_SECS = 2;
const DEFAULT_RETRY_SECS = 1;
/** Refusals in a row of one line, until its batch is said to wait. */
const WAITS_AFTER = 2;
const FIRST_ERROR = 400;
const NO_USAGE: BatchUsage = { inputTokens: 0, cachedTokens: 0, outputTokens: 0, reasoningTokens: 0 };

/** What errors of all APIs have. */
const refusalSchema = z.object({ error: z.object({ message: z.string(), code: z.string().nullish() }) });
/** A model of another machine that is away for a while holds up no line for another model. */
const OF_ONE_MODEL: ErrorCode = "fleet_unreachable";

interface LineOptions {
  readonly store: Pick<BatchStore, "answer">;
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
  readonly #options: LineOptions;
  readonly #signal: AbortSignal;
  #waiting: string | undefined;

  /** @param signal aborts when no answer is wanted any longer */
  constructor(batch: Batch, format: BatchFormat, options: LineOptions, signal: AbortSignal) {
    this.#batch = batch;
    this.#format = format;
    this.#options = options;
    this.#signal = signal;
  }

  /** Why lines were refused again and again since the last answer. */
  get waiting(): string | undefined {
    return this.#waiting;
  }

  /** Runs a line and saves its answer; resolves with when to try it again, or undefined when that is not to be. */
  async run(attempt: Attempt): Promise<Retry | undefined> {
    const { folder, now } = this.#options;
    const { number, start, length } = attempt.line;
    const text = await folder.text(this.#batch.inputFile, start, length).catch(whenGone);
    const requestId = newId("batch_req");
    if (this.#signal.aborted) return undefined;
    const { response, usage } = await this.#ask(attempt.line, text, requestId);
    if (this.#signal.aborted) return undefined;
    const wait = retryWait(response, attempt);
    if (wait !== undefined) {
      const refusal = refusalSchema.safeParse(tryJson(response.body)).data?.error;
      if (attempt.refusals >= WAITS_AFTER) this.#wait(refusal?.message);
      const isLong = response.retryAfterSecs >= LONG_WAIT_SECS;
      return { at: now() + wait, holdsUpAll: isLong && refusal?.code !== OF_ONE_MODEL };
    }
    this.#waiting = undefined;
    await this.#save({ number }, requestId, response, usage);
    return undefined;
  }

  #wait(message = "the daemon has no room for it."): void {
    const reason = `waits: ${message}`;
    if (this.#waiting === undefined)
      this.#options.logger.warn({ batch: this.#batch.id }, `A batch ${reason}`);
    this.#waiting = reason;
  }

  /** Whatever goes wrong with one line is the answer to that line: it must not hold up its batch. */
  async #ask(
    { number }: Pick<WaitingLine, "number">,
    text: string | ServiceError,
    requestId: string,
  ): Promise<{ readonly response: LineResponse; readonly usage: BatchUsage }> {
    const { id, endpoint, owner } = this.#batch;
    const { runLine, logger } = this.#options;
    try {
      if (text instanceof ServiceError) throw text;
      const request = this.#format.request(await parseJsonText(text, "The line"), endpoint);
      const response = await runLine({ ...request, requestId, owner }, this.#signal);
      const hasSucceeded = response.status < FIRST_ERROR;
      return { response, usage: hasSucceeded ? this.#format.usage(JSON.parse(response.body)) : NO_USAGE };
    } catch (cause) {
      const error = ServiceError.from(cause);
      if (!this.#signal.aborted)
        logger.warn({ batch: id, line: number, request_id: requestId, err: cause }, error.message);
      const { status, retryable, retryAfterSecs = DEFAULT_RETRY_SECS } = error;
      const body = this.#format.error(error, requestId);
      return { response: { status, body, retryable, retryAfterSecs }, usage: NO_USAGE };
    }
  }

  /** What has been answered is not computed again because the disk is full for a while. */
  async #save(
    { number }: Pick<WaitingLine, "number">,
    requestId: string,
    { status, body }: LineResponse,
    usage: BatchUsage,
  ): Promise<void> {
    const { store, logger, onLine } = this.#options;
    const outcome = status < FIRST_ERROR ? "succeeded" : "errored";
    for (;;) {
      try {
        const isNew = await store.answer(this.#batch.id, number, outcome, { status, requestId, body }, usage);
        if (isNew) onLine(outcome);
        return;
      } catch (error) {
        const { code, message } = ServiceError.from(error);
        if (code !== "insufficient_disk" || this.#signal.aborted) throw error;
        logger.warn({ batch: this.#batch.id, line: number }, message);
        await sleep(SAVE_AGAIN_MS, undefined, { signal: this.#signal, ref: false }).catch(() => undefined);
      }
    }
  }
}

/** Of a line that is not in the file, that is the answer. @throws everything else, which may pass */
function whenGone(error: unknown): ServiceError {
  if (error instanceof ServiceError && error.code === "file_not_found") return error;
  throw error;
}
