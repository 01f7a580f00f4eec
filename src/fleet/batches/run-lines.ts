import { setTimeout as sleep } from "node:timers/promises";
import type { Logger } from "pino";
import { z } from "zod";
import { type BatchFormat, formatOf, type RunLine } from "../../batches/batch-format.ts";
import type { BatchStore, FileContents } from "../../batches/batch-store.ts";
import type { RunOutcome } from "../../batches/batch.ts";
import type { LinePool, Retry } from "../../batches/line-pool.ts";
import { LineRunner } from "../../batches/run-line.ts";
import { ServiceError } from "../../errors/service-error.ts";
import type { Answers } from "./answers.ts";
import type { BatchModels } from "./batch-models.ts";
import type { SharedBatch } from "./batch-record.ts";
import { isAway } from "../jetstream/jetstream-errors.ts";
import type { LineRuns } from "./line-runs.ts";
import type { ToldRefusals } from "./told-refusals.ts";
import { type RunnableGroup, RunQueue } from "./run-queue.ts";

/** Before a line is read, or an answer saved, again while the server is away. */
const AGAIN_MS = 1000;

const bodySchema = z.looseObject({});

export interface LineRunnerOptions {
  readonly answers: Answers;
  readonly runs: LineRuns;
  readonly folder: FileContents;
  readonly refusals: Pick<ToldRefusals, "tell">;
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
export class RunnerOfLines {
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
            if (isAway(error)) return { at: this.#options.now() + AGAIN_MS, holdsUpAll: false };
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
          if (!isAway(error) || signal.aborted) throw error;
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
