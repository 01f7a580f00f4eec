import { setTimeout as sleep } from "node:timers/promises";
import type { Logger } from "pino";
import { z } from "zod";
import type { BatchStore, FileContents } from "../../batches/batch-store.ts";
import { type BatchFormat, formatOf, type RunLine, type RunOutcome } from "../../batches/batch.ts";
import type { Attempt, Lines, NextLine } from "../../batches/line-queue.ts";
import type { LinePool, Retry } from "../../batches/line-scheduler.ts";
import { LineRunner } from "../../batches/run-line.ts";
import { ServiceError } from "../../errors/service-error.ts";
import { isUnreachable } from "../jetstream/jetstream-errors.ts";
import type { Answers } from "./answer-store.ts";
import type { BatchModels, ModelHere } from "./batch-models.ts";
import type { ReportedRefusals } from "./batch-notices.ts";
import type { SharedBatch } from "./batch-record.ts";
import type { LineRun, LineRuns, QueuedBatch } from "./line-runs.ts";

/** Before a line is read, or an answer saved, again while the server is away. */
const AGAIN_MS = 1000;

const bodySchema = z.looseObject({});

export interface LineRunnerOptions {
  readonly answers: Answers;
  readonly runs: LineRuns;
  readonly folder: FileContents;
  readonly refusals: Pick<ReportedRefusals, "tell">;
  readonly models: BatchModels;
  readonly pool: LinePool;
  readonly formats: Readonly<Record<string, BatchFormat>>;
  readonly runLine: RunLine;
  readonly logger: Pick<Logger, "warn">;
  /** Told when a line is done. */
  readonly onLine: (outcome: RunOutcome) => void;
  /** Unix milliseconds. */
  readonly now: () => number;
}

/** Runs lines of one batch on this machine, as long as it is told to. */
export class FleetLineRunner {
  readonly #options: LineRunnerOptions;
  #work: { readonly stop: AbortController; readonly over: Promise<void> } | undefined;
  #failure: unknown;

  constructor(options: LineRunnerOptions) {
    this.#options = options;
  }

  /**
   * Begins, unless it runs already.
   * @param isLeading whether this machine also answers lines whose model nobody has
   * @throws what has ended it before
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

  /** Ends lines under way; resolves when none is running. */
  async stop(): Promise<void> {
    this.#work?.stop.abort();
    await this.#work?.over;
    this.#failure = undefined;
  }

  async #run(batch: SharedBatch, isLeading: () => boolean, signal: AbortSignal): Promise<void> {
    const { pool, runs, answers } = this.#options;
    const runnable = (): readonly RunnableGroup[] => this.#runnable(batch, isLeading());
    const format = formatOf(this.#options.formats, batch);
    const queue = new RunQueue({ batch, runs, answers, runnable });
    const store = { answer: this.#saver(signal) };
    // One for each name that lines have to use, so that each knows whether its lines wait.
    const runners = new Map<string | undefined, LineRunner>();
    const runnerFor = (rename: string | undefined): LineRunner => {
      const runLine: RunLine = async (request, ended) => {
        if (!format.endpoints.includes(request.path)) throw forbidden(request.path);
        return await this.#options.runLine({ ...request, body: withModel(request.body, rename) }, ended);
      };
      const runner =
        runners.get(rename) ?? new LineRunner(batch, format, { ...this.#options, store, runLine }, signal);
      runners.set(rename, runner);
      return runner;
    };
    try {
      await pool.run({
        owner: batch.owner,
        queue,
        signal,
        run: async (attempt) => {
          const runner = runnerFor(queue.renamed(attempt));
          const again = await runner.run(attempt).catch((error: unknown): Retry => {
            if (isUnreachable(error)) return { at: this.#options.now() + AGAIN_MS, holdsUpAll: false };
            throw error;
          });
          if (again && runner.waiting !== undefined)
            void this.#options.refusals.tell(batch.id, runner.waiting).catch(() => undefined);
          if (!again && !signal.aborted) queue.done(attempt);
          return again;
        },
      });
    } finally {
      queue.close();
    }
  }

  #runnable({ groups }: SharedBatch, isLeading: boolean): readonly RunnableGroup[] {
    return groups.flatMap((each, group): RunnableGroup[] => {
      // Whoever leads says that nobody has the model.
      if (!each.model) return isLeading ? [{ group, here: { alias: "", rename: undefined } }] : [];
      const here = this.#options.models.here(each);
      return here ? [{ group, here }] : [];
    });
  }

  /** What is answered is not computed again because the server is away for a while. */
  #saver(signal: AbortSignal): BatchStore["answer"] {
    return async (batch, number, outcome, answer, usage) => {
      for (;;) {
        try {
          return await this.#options.answers.save(
            batch,
            number,
            outcome === "succeeded" ? outcome : "errored",
            answer,
            usage,
          );
        } catch (error) {
          if (!isUnreachable(error) || signal.aborted) throw error;
          await sleep(AGAIN_MS, undefined, { signal, ref: false }).catch(() => undefined);
        }
      }
    };
  }
}

/** Whoever may use the NATS server may have written the line: it may ask for answers, and for nothing else. */
function forbidden(path: string): ServiceError {
  return new ServiceError("invalid_parameter", `Lines of batches cannot be for ${path.slice(0, 100)}.`);
}

/** A body that calls the model as this machine does. */
function withModel(body: string, name: string | undefined): string {
  return name === undefined ? body : JSON.stringify({ ...bodySchema.parse(JSON.parse(body)), model: name });
}

/** Before it is looked again whether lines wait. */
const LOOK_MS = 1000;

/** What another model's turn does not let begin here, another machine may run. */
const UNBEGUN_MS = 5000;

/** Lines of one model that this machine runs. */
interface RunnableGroup {
  readonly group: number;
  readonly here: ModelHere;
}

export interface RunQueueOptions {
  readonly batch: QueuedBatch;
  readonly runs: LineRuns;
  readonly answers: Answers;
  /** What this machine can run now. */
  readonly runnable: () => readonly RunnableGroup[];
}

interface OpenRun {
  readonly run: LineRun;
  readonly here: ModelHere;
  readonly waiting: Attempt[];
  readonly returned: { readonly attempt: Attempt; readonly at: number }[];
  /** Lines without an answer. */
  left: number;
  /** Lines that are being run. */
  running: number;
  isBegun: boolean;
  isLeft: boolean;
}

/**
 * Lines of a batch of the fleet, for this machine's pool: it takes a run of them when it has nothing else to do, and gives
 * back what it has no room for.
 */
class RunQueue implements Lines {
  readonly #options: RunQueueOptions;
  readonly #open = new Set<OpenRun>();
  readonly #of = new Map<Attempt, OpenRun>();
  #lookAt = 0;
  /** Whether the line that came back last found no room. */
  #isRefused = false;
  /** The group that comes next. */
  #turn = 0;
  #isClosed = false;

  constructor(options: RunQueueOptions) {
    this.#options = options;
  }

  /** Never undefined: other machines may give lines back, until the batch is over. */
  async next(now: number): Promise<NextLine> {
    for (const { here, waiting, returned } of this.#open) {
      if (waiting.length > 0 || returned.some(({ at }) => at <= now)) return { model: here.alias, at: now };
    }
    const taken = await this.#takeRun(now, () => true);
    if (taken) return { model: taken.here.alias, at: now };
    const times = [...this.#open].flatMap(({ returned }) => returned.map(({ at }) => at));
    return { model: "", at: Math.min(this.#lookAt, ...times) };
  }

  async take(model: string, now: number): Promise<Attempt | undefined> {
    const held = this.#takeHeld(model, now);
    if (held || !(await this.#takeRun(now, ({ here }) => here.alias === model))) return held;
    return this.#takeHeld(model, now);
  }

  giveBack(attempt: Attempt, at: number): void {
    const open = this.#of.get(attempt);
    if (!open) return;
    open.running -= 1;
    this.#isRefused = attempt.refusals > 0;
    if (this.#isRefused) {
      // Another machine may have the room that this one lacks.
      this.#lookAt = Math.max(this.#lookAt, at);
      open.isLeft = true;
    }
    if (!open.isLeft) open.returned.push({ attempt, at });
    this.#settle(open);
  }

  /** How a line has to call its model here, if not as it does. */
  renamed(attempt: Attempt): string | undefined {
    return this.#of.get(attempt)?.here.rename;
  }

  /** A line has its answer. */
  done(attempt: Attempt): void {
    const open = this.#of.get(attempt);
    if (!open) return;
    this.#isRefused = false;
    open.running -= 1;
    open.left -= 1;
    this.#of.delete(attempt);
    this.#settle(open);
  }

  /** Gives back all that has no answer. */
  close(): void {
    this.#isClosed = true;
    for (const { run } of this.#open) run.giveBack();
    this.#open.clear();
    this.#of.clear();
  }

  #takeHeld(model: string, now: number): Attempt | undefined {
    for (const open of this.#open) {
      if (open.here.alias !== model) continue;
      const due = open.returned.findIndex(({ at }) => at <= now);
      const attempt = due >= 0 ? open.returned.splice(due, 1)[0]?.attempt : open.waiting.shift();
      if (!attempt) continue;
      open.running += 1;
      open.isBegun = true;
      return attempt;
    }
    return undefined;
  }

  async #takeRun(now: number, isWanted: (each: RunnableGroup) => boolean): Promise<OpenRun | undefined> {
    if (now < this.#lookAt) return undefined;
    const { batch, runs, runnable } = this.#options;
    const groups = runnable().filter(isWanted);
    try {
      for (let tried = 0; tried < groups.length; tried += 1) {
        this.#turn += 1;
        const next = groups[this.#turn % groups.length];
        const run = next && (await runs.take(batch, next.group));
        const open = run && (await this.#begin(run, next));
        if (open) return open;
      }
    } catch (error) {
      // Lines under way go on while the server is away.
      if (!isUnreachable(error)) throw error;
    }
    this.#lookAt = now + LOOK_MS;
    return undefined;
  }

  async #begin(run: LineRun, { here }: RunnableGroup): Promise<OpenRun | undefined> {
    const { batch, answers } = this.#options;
    // It has come again since the server did not hear of it for a while.
    const isHere = [...this.#open].some((each) => each.run.sequence === run.sequence);
    if (isHere) return (run.leave(), undefined);
    let { lines } = run;
    if (run.wasTaken) {
      try {
        const { answered } = await answers.tally(batch.id);
        lines = lines.filter(({ number }) => !answered.has(number));
      } catch (error) {
        run.giveBack();
        throw error;
      }
    }
    if (this.#isClosed) return (run.giveBack(), undefined);
    if (lines.length === 0) return (run.done(), undefined);
    const waiting = lines.map((place): Attempt => ({
      line: { ...place, customId: "", model: here.alias, order: "" },
      failures: 0,
      refusals: this.#isRefused ? 1 : 0,
    }));
    const open: OpenRun = {
      run,
      here,
      waiting,
      returned: [],
      left: lines.length,
      running: 0,
      isBegun: false,
      isLeft: false,
    };
    this.#open.add(open);
    for (const attempt of waiting) this.#of.set(attempt, open);
    setTimeout(() => {
      if (open.isBegun) return;
      open.isLeft = true;
      this.#settle(open);
    }, UNBEGUN_MS).unref();
    return open;
  }

  #settle(open: OpenRun): void {
    const isAnswered = open.left === 0;
    if (!isAnswered && !(open.isLeft && open.running === 0)) return;
    if (!this.#open.delete(open)) return;
    for (const [attempt, each] of this.#of) if (each === open) this.#of.delete(attempt);
    if (isAnswered) open.run.done();
    else open.run.giveBack();
  }
}
