import { setTimeout as sleep } from "node:timers/promises";
import { z } from "zod";
import { type BatchFormat, formatOf, type RunLine } from "../../batches/batch.ts";
import type { Attempt, PendingLines, NextLine } from "../../batches/line-queue.ts";
import type { LineScheduler, Retry } from "../../batches/line-scheduler.ts";
import { LineRunner, type LineRunnerOptions } from "../../batches/run-line.ts";
import { ServiceError } from "../../errors/service-error.ts";
import { isUnreachable } from "../jetstream/jetstream-errors.ts";
import type { AnswerStore } from "./answer-store.ts";
import type { BatchModels, LocalModel } from "./batch-models.ts";
import type { ReportedRefusals } from "./batch-notices.ts";
import type { SharedBatch } from "./batch-record.ts";
import type { LineRun, LineRuns, QueuedBatch } from "./line-runs.ts";

/** Delay before a line is read, or an answer saved, again while the server is unreachable. */
const RETRY_DELAY_MS = 1000;

const bodySchema = z.looseObject({});

export interface FleetRunnerOptions extends Omit<LineRunnerOptions, "saveAnswer"> {
  readonly answers: AnswerStore;
  readonly runs: LineRuns;
  readonly refusals: Pick<ReportedRefusals, "report">;
  readonly models: BatchModels;
  readonly scheduler: LineScheduler;
  readonly formats: Readonly<Record<string, BatchFormat>>;
}

/** Runs lines of one batch on this machine while it is in progress. */
export class FleetBatchRunner {
  readonly #options: FleetRunnerOptions;
  #work: { readonly stop: AbortController; readonly over: Promise<void> } | undefined;
  #failure: unknown;

  constructor(options: FleetRunnerOptions) {
    this.#options = options;
  }

  /**
   * Starts unless it is running.
   * @param isLeading returns true if this machine also answers lines whose model no machine has
   * @throws the error that ended the last run
   */
  run(batch: SharedBatch, isLeading: () => boolean): void {
    const failure = this.#failure;
    this.#failure = undefined;
    if (failure !== undefined) throw failure;
    if (this.#work) return;
    const stop = new AbortController();
    const over = this.#run(batch, isLeading, stop.signal)
      .catch((error: unknown) => {
        this.#failure = error;
      })
      .finally(() => {
        this.#work = undefined;
      });
    this.#work = { stop, over };
  }

  /** Aborts running lines; resolves when none is running. */
  async stop(): Promise<void> {
    this.#work?.stop.abort();
    await this.#work?.over;
    this.#failure = undefined;
  }

  async #run(batch: SharedBatch, isLeading: () => boolean, signal: AbortSignal): Promise<void> {
    const { scheduler, runs, answers } = this.#options;
    const runnable = (): readonly RunnableGroup[] => this.#runnable(batch, isLeading());
    const format = formatOf(this.#options.formats, batch);
    const queue = new RunQueue({ batch, runs, answers, runnable });
    const saveAnswer = this.#saver(batch.id, signal);
    // One runner for each requested model name, each with its own reason to wait.
    const runners = new Map<string | undefined, LineRunner>();
    const runnerFor = (requestName: string | undefined): LineRunner => {
      const runLine: RunLine = async (request, ended) => {
        if (!format.endpoints.includes(request.path)) throw forbiddenPath(request.path);
        return await this.#options.runLine({ ...request, body: withModel(request.body, requestName) }, ended);
      };
      const runner =
        runners.get(requestName) ??
        new LineRunner(batch, format, { ...this.#options, saveAnswer, runLine }, signal);
      runners.set(requestName, runner);
      return runner;
    };
    try {
      await scheduler.run({
        owner: batch.owner,
        queue,
        signal,
        run: async (attempt) => {
          const runner = runnerFor(queue.requestName(attempt));
          const retry = await runner.run(attempt).catch((error: unknown): Retry => {
            if (isUnreachable(error)) return { at: this.#options.now() + RETRY_DELAY_MS, blocksAll: false };
            throw error;
          });
          if (retry && runner.waitingReason !== undefined)
            void this.#options.refusals.report(batch.id, runner.waitingReason).catch(() => undefined);
          if (!retry && !signal.aborted) queue.done(attempt);
          return retry;
        },
      });
    } finally {
      queue.close();
    }
  }

  #runnable({ groups }: SharedBatch, isLeading: boolean): readonly RunnableGroup[] {
    return groups.flatMap((each, group): RunnableGroup[] => {
      // The leader answers that no machine has the model.
      if (!each.model) return isLeading ? [{ group, localModel: { alias: "", requestName: undefined } }] : [];
      const localModel = this.#options.models.localModel(each);
      return localModel ? [{ group, localModel }] : [];
    });
  }

  /** Saves an answer, again and again while the server is unreachable, so that it need not be computed again. */
  #saver(batch: string, signal: AbortSignal): LineRunnerOptions["saveAnswer"] {
    return async (...answer) => {
      for (;;) {
        try {
          return await this.#options.answers.add(batch, ...answer);
        } catch (error) {
          if (!isUnreachable(error) || signal.aborted) throw error;
          await sleep(RETRY_DELAY_MS, undefined, { signal, ref: false }).catch(() => undefined);
        }
      }
    };
  }
}

/** Any NATS client may have written the line, so it must not reach other routes. */
function forbiddenPath(path: string): ServiceError {
  return new ServiceError("invalid_parameter", `Lines of batches cannot be for ${path.slice(0, 100)}.`);
}

/** Replaces the model name in a body. */
function withModel(body: string, name: string | undefined): string {
  return name === undefined ? body : JSON.stringify({ ...bodySchema.parse(JSON.parse(body)), model: name });
}

/** Interval of checks for queued lines. */
const POLL_INTERVAL_MS = 1000;

/** Time after which lines that have not started here are released to other machines. */
const MAX_IDLE_MS = 5000;

/** Lines of one model that this machine can run. */
interface RunnableGroup {
  readonly group: number;
  readonly localModel: LocalModel;
}

interface RunQueueOptions {
  readonly batch: QueuedBatch;
  readonly runs: LineRuns;
  readonly answers: AnswerStore;
  /** Returns the groups that this machine can run now. */
  readonly runnable: () => readonly RunnableGroup[];
}

interface OpenRun {
  readonly run: LineRun;
  readonly localModel: LocalModel;
  readonly waiting: Attempt[];
  readonly returned: { readonly attempt: Attempt; readonly at: number }[];
  /** Number of lines without an answer. */
  unanswered: number;
  /** Number of running lines. */
  running: number;
  isStarted: boolean;
  isReleased: boolean;
}

/**
 * Lines of a fleet batch for this machine's scheduler: takes runs of lines when it has nothing else to do, and releases
 * those that this machine refuses.
 */
class RunQueue implements PendingLines {
  readonly #options: RunQueueOptions;
  readonly #open = new Set<OpenRun>();
  readonly #runOf = new Map<Attempt, OpenRun>();
  #nextPollAt = 0;
  /** True if the line that was put back last was refused. */
  #wasRefused = false;
  /** Index of the next group. */
  #groupIndex = 0;
  #isClosed = false;

  constructor(options: RunQueueOptions) {
    this.#options = options;
  }

  /** Never undefined: other machines may release lines until the batch ends. */
  async next(now: number): Promise<NextLine> {
    for (const { localModel, waiting, returned } of this.#open) {
      if (waiting.length > 0 || returned.some(({ at }) => at <= now))
        return { model: localModel.alias, at: now };
    }
    const taken = await this.#takeRun(now, () => true);
    if (taken) return { model: taken.localModel.alias, at: now };
    const times = [...this.#open].flatMap(({ returned }) => returned.map(({ at }) => at));
    return { model: "", at: Math.min(this.#nextPollAt, ...times) };
  }

  async take(model: string, now: number): Promise<Attempt | undefined> {
    const opened = this.#takeOpen(model, now);
    if (opened || !(await this.#takeRun(now, ({ localModel }) => localModel.alias === model))) return opened;
    return this.#takeOpen(model, now);
  }

  putBack(attempt: Attempt, at: number): void {
    const open = this.#runOf.get(attempt);
    if (!open) return;
    open.running -= 1;
    this.#wasRefused = attempt.refusals > 0;
    if (this.#wasRefused) {
      // Another machine may have the memory that this one lacks.
      this.#nextPollAt = Math.max(this.#nextPollAt, at);
      open.isReleased = true;
    }
    if (!open.isReleased) open.returned.push({ attempt, at });
    this.#settle(open);
  }

  /** Returns the model name to use for a line, if it differs from that of the line. */
  requestName(attempt: Attempt): string | undefined {
    return this.#runOf.get(attempt)?.localModel.requestName;
  }

  /** Records that a line has its answer. */
  done(attempt: Attempt): void {
    const open = this.#runOf.get(attempt);
    if (!open) return;
    this.#wasRefused = false;
    open.running -= 1;
    open.unanswered -= 1;
    this.#runOf.delete(attempt);
    this.#settle(open);
  }

  /** Releases all lines without an answer. */
  close(): void {
    this.#isClosed = true;
    for (const { run } of this.#open) run.release();
    this.#open.clear();
    this.#runOf.clear();
  }

  #takeOpen(model: string, now: number): Attempt | undefined {
    for (const open of this.#open) {
      if (open.localModel.alias !== model) continue;
      const due = open.returned.findIndex(({ at }) => at <= now);
      const attempt = due >= 0 ? open.returned.splice(due, 1)[0]?.attempt : open.waiting.shift();
      if (!attempt) continue;
      open.running += 1;
      open.isStarted = true;
      return attempt;
    }
    return undefined;
  }

  async #takeRun(now: number, isWanted: (each: RunnableGroup) => boolean): Promise<OpenRun | undefined> {
    if (now < this.#nextPollAt) return undefined;
    const { batch, runs, runnable } = this.#options;
    const groups = runnable().filter(isWanted);
    try {
      for (let tried = 0; tried < groups.length; tried += 1) {
        this.#groupIndex += 1;
        const next = groups[this.#groupIndex % groups.length];
        const run = next && (await runs.take(batch, next.group));
        const open = run && (await this.#openRun(run, next));
        if (open) return open;
      }
    } catch (error) {
      // Running lines continue while the server is unreachable.
      if (!isUnreachable(error)) throw error;
    }
    this.#nextPollAt = now + POLL_INTERVAL_MS;
    return undefined;
  }

  async #openRun(run: LineRun, { localModel }: RunnableGroup): Promise<OpenRun | undefined> {
    const { batch, answers } = this.#options;
    // Redelivered to this machine, because the server did not receive its progress messages for a while.
    const isOpen = [...this.#open].some((each) => each.run.sequence === run.sequence);
    if (isOpen) return (run.stopProgress(), undefined);
    let { lines } = run;
    if (run.isRedelivered) {
      try {
        const { answered } = await answers.tally(batch.id);
        lines = lines.filter(({ number }) => !answered.has(number));
      } catch (error) {
        run.release();
        throw error;
      }
    }
    if (this.#isClosed) return (run.release(), undefined);
    if (lines.length === 0) return (run.done(), undefined);
    const waiting = lines.map((position): Attempt => ({
      line: { ...position, customId: "", model: localModel.alias, sortKey: "" },
      failures: 0,
      refusals: this.#wasRefused ? 1 : 0,
    }));
    const open: OpenRun = {
      run,
      localModel,
      waiting,
      returned: [],
      unanswered: lines.length,
      running: 0,
      isStarted: false,
      isReleased: false,
    };
    this.#open.add(open);
    for (const attempt of waiting) this.#runOf.set(attempt, open);
    setTimeout(() => {
      if (open.isStarted) return;
      open.isReleased = true;
      this.#settle(open);
    }, MAX_IDLE_MS).unref();
    return open;
  }

  #settle(open: OpenRun): void {
    const isAnswered = open.unanswered === 0;
    if (!isAnswered && !(open.isReleased && open.running === 0)) return;
    if (!this.#open.delete(open)) return;
    for (const [attempt, each] of this.#runOf) if (each === open) this.#runOf.delete(attempt);
    if (isAnswered) open.run.done();
    else open.run.release();
  }
}
