import { setTimeout as sleep } from "node:timers/promises";
import type { Logger } from "pino";
import { MAX_TIMER_MS } from "../async/timers.ts";
import { ServiceError } from "../errors/service-error.ts";
import type { BatchStore, FileContents } from "./batch-store.ts";
import {
  type AnsweredLine,
  type Batch,
  type BatchFormat,
  type FilePurpose,
  type FinalStatus,
  formatOf,
  newId,
  type RunLine,
  type RunOutcome,
  type StoredFile,
} from "./batch.ts";
import type { FileFolder } from "./file-store.ts";
import { readInput } from "./input-file.ts";
import { LineQueue } from "./line-queue.ts";
import type { LinePool } from "./line-scheduler.ts";
import { LineRunner } from "./run-line.ts";
import { DamagedDatabase } from "./sqlite/database.ts";

/** Before a batch goes on whose store or disk has failed. */
const RETRY_MS = 10_000;

interface RunnerOptions {
  readonly store: BatchStore;
  readonly folder: FileFolder;
  readonly formats: Readonly<Record<string, BatchFormat>>;
  readonly runLine: RunLine;
  /** Runs the lines. */
  readonly pool: LinePool;
  readonly limits: { readonly maxLines: number; readonly maxLineBytes: number };
  readonly logger: Pick<Logger, "info" | "warn" | "error">;
  /** Told when a line is done. */
  readonly onLine: (outcome: RunOutcome) => void;
  /** Told when a batch is over. */
  readonly onEnd: (batch: Batch) => void;
  /** Told when the store turns out to be damaged; nothing more is done then. */
  readonly onDamage: (error: DamagedDatabase) => void;
  /** Unix milliseconds. */
  readonly now: () => number;
}

interface Job {
  /** Aborts when its lines are not to be run any longer: it is cancelled, has expired, or the runner stops. */
  readonly stop: AbortController;
  readonly over: Promise<void>;
}

/** Leads batches through their lives. Whatever state the store has one in, it goes on from there. */
export class BatchRunner {
  readonly #options: RunnerOptions;
  readonly #jobs = new Map<string, Job>();
  readonly #stopping = new AbortController();
  /** Of batches whose lines are run. */
  readonly #lines = new Map<string, LineRunner>();

  constructor(options: RunnerOptions) {
    this.#options = options;
  }

  /** Batches that are not over. */
  get running(): number {
    return this.#jobs.size;
  }

  /** Goes on with all that are not over. */
  async resume(): Promise<void> {
    for (const batch of await this.#options.store.unfinished()) this.take(batch);
  }

  /** Leads a batch to its end. */
  take({ id, expiresAt }: Batch): void {
    if (this.#jobs.has(id) || this.#stopping.signal.aborted) return;
    const stop = new AbortController();
    const left = Math.min(Math.max(0, expiresAt - this.#options.now()), MAX_TIMER_MS);
    const timer = setTimeout(() => stop.abort(), left).unref();
    const over = this.#lead(id, stop.signal).finally(() => {
      clearTimeout(timer);
      this.#jobs.delete(id);
    });
    this.#jobs.set(id, { stop, over });
  }

  /**
   * Cancels a batch; what is done of it will be in its output.
   * @throws ServiceError batch_conflict for one that is over, or about to be
   */
  async cancel(id: string): Promise<Batch> {
    const { store } = this.#options;
    const change = { status: "cancelling", endsAs: "cancelled" } as const;
    const cancelled = await store.change(id, ["validating", "in_progress"], change);
    if (cancelled) {
      this.#jobs.get(id)?.stop.abort();
      return cancelled;
    }
    const batch = await store.batch(id, undefined);
    if (batch?.status === "cancelling") return batch;
    throw new ServiceError(
      "batch_conflict",
      `The batch is ${batch?.status ?? "gone"}; it cannot be cancelled now.`,
    );
  }

  /** Why a batch waits, for its users. */
  async waiting(id: string): Promise<string | undefined> {
    return this.#lines.get(id)?.waiting;
  }

  /** Stops running lines, which go on when a runner is started again. */
  async stop(): Promise<void> {
    this.#stopping.abort();
    const jobs = [...this.#jobs.values()];
    for (const { stop } of jobs) stop.abort();
    await Promise.all(jobs.map(({ over }) => over));
  }

  /** Never rejects. */
  async #lead(id: string, stop: AbortSignal): Promise<void> {
    const { store, logger } = this.#options;
    while (!this.#stopping.signal.aborted) {
      try {
        const batch = await store.batch(id, undefined);
        if (!batch || (await this.#step(batch, stop))) return;
      } catch (error) {
        if (error instanceof DamagedDatabase) return this.#options.onDamage(error);
        const { code, message } = ServiceError.from(error);
        if (code === "batch_store_unavailable") return;
        logger.warn({ batch: id, err: error }, `A batch waits for ${RETRY_MS / 1000} s: ${message}`);
        await sleep(RETRY_MS, undefined, { signal: this.#stopping.signal, ref: false }).catch(
          () => undefined,
        );
      }
    }
  }

  /** Takes a batch to its next status; true when that is its last. */
  async #step(batch: Batch, stop: AbortSignal): Promise<boolean> {
    switch (batch.status) {
      case "validating":
        return await this.#validate(batch);
      case "in_progress":
        await this.#run(batch, stop);
        return false;
      case "finalizing":
      case "cancelling":
        await this.#finish(batch, batch.endsAs ?? "completed");
        return true;
      default:
        return true;
    }
  }

  async #validate(batch: Batch): Promise<boolean> {
    const { store, folder, formats, limits } = this.#options;
    const pieces = folder.read(batch.inputFile);
    const { total, problems } = await readInput(batch, pieces, {
      store,
      ...limits,
      format: formatOf(formats, batch),
    });
    if (problems.length === 0) {
      await store.change(batch.id, ["validating"], { status: "in_progress", total });
      return false;
    }
    const failed = await store.finish(batch.id, { status: "failed", problems }, []);
    this.#options.onEnd(failed);
    return true;
  }

  async #run(batch: Batch, stop: AbortSignal): Promise<void> {
    const { store, now } = this.#options;
    const queue = new LineQueue(store, batch.id);
    const runner = new LineRunner(batch, formatOf(this.#options.formats, batch), this.#options, stop);
    this.#lines.set(batch.id, runner);
    try {
      await this.#options.pool.run({
        owner: batch.owner,
        queue,
        signal: stop,
        run: async (attempt) => await runner.run(attempt),
      });
    } finally {
      this.#lines.delete(batch.id);
    }
    if (this.#stopping.signal.aborted) return;
    const hasExpired = stop.aborted && now() >= batch.expiresAt;
    if (stop.aborted && !hasExpired) return;
    const endsAs = hasExpired ? "expired" : "completed";
    await store.change(batch.id, ["in_progress"], { status: "finalizing", endsAs });
  }

  async #finish({ id }: Batch, endsAs: FinalStatus): Promise<void> {
    const { store, folder, formats, now } = this.#options;
    if (endsAs === "cancelled" || endsAs === "expired") await store.answerRest(id, endsAs);
    const batch = await store.batch(id, undefined);
    if (!batch) return;
    const format = formatOf(formats, batch);
    const { output, errors } = await writeOutput(batch, { store, folder, format, now });
    const files = [output, errors].filter((file) => file !== undefined);
    const { succeeded, errored, cancelled, expired } = batch.counts;
    // A batch that was cancelled while it was read has never been counted.
    const total = succeeded + errored + cancelled + expired;
    const change = { status: endsAs, total, outputFile: output?.id, errorFile: errors?.id };
    let ended: Batch;
    try {
      ended = await store.finish(id, change, files);
    } catch (error) {
      await forget(files, this.#options);
      throw error;
    }
    this.#options.onEnd(ended);
  }
}

/** Answers that are read at once: fewer while they are long, as vectors of long lists are, which have many megabytes. */
const ANSWERS_AT_ONCE = 32;
const CHARACTERS_AT_ONCE = 16 * 1024 * 1024;
/** Short lines are written together. */
const CHARACTERS_WRITTEN = 256 * 1024;

interface WriteOptions {
  readonly store: Pick<BatchStore, "answers" | "file">;
  readonly folder: Pick<FileContents, "write" | "remove">;
  readonly format: BatchFormat;
  /** The id of a file that is about to be written. */
  readonly newFileId?: () => string;
  readonly now: () => number;
}

interface WrittenOutput {
  readonly output?: StoredFile;
  readonly errors?: StoredFile;
}

/**
 * Writes the answers of a batch, in the order of its input, to files. The files are durable but unknown until the store has
 * them, so that this can be done again after any interruption.
 */
export async function writeOutput(batch: Batch, options: WriteOptions): Promise<WrittenOutput> {
  const { separatesErrors } = options.format;
  if (!separatesErrors) return { output: await write(batch, options, "results", "results", () => true) };
  const { succeeded, errored, cancelled, expired } = batch.counts;
  const output =
    succeeded > 0
      ? await write(batch, options, "batch_output", "output", ({ outcome }) => outcome === "succeeded")
      : undefined;
  try {
    const errors =
      errored + cancelled + expired > 0
        ? await write(batch, options, "batch_output", "error", ({ outcome }) => outcome !== "succeeded")
        : undefined;
    return { ...(output && { output }), ...(errors && { errors }) };
  } catch (error) {
    await forget(output ? [output] : [], options);
    throw error;
  }
}

/** Removes files that the store does not have: written again and again, they would fill the disk. */
export async function forget(
  files: readonly StoredFile[],
  { store, folder }: Pick<WriteOptions, "store" | "folder">,
): Promise<void> {
  for (const { id } of files) if (!(await store.file(id, undefined))) await folder.remove(id);
}

async function write(
  { id: batch, owner, outputLifeMs }: Batch,
  { store, folder, format, now, newFileId = () => newId("file") }: WriteOptions,
  purpose: FilePurpose,
  kind: string,
  belongs: (line: AnsweredLine) => boolean,
): Promise<StoredFile> {
  const id = newFileId();
  const createdAt = now();
  const bytes = await folder.write(id, linesOf(batch, store, format, belongs));
  const name = `${batch}_${kind}.jsonl`;
  return { id, owner, purpose, name, bytes, createdAt, expiresAt: createdAt + outputLifeMs };
}

async function* linesOf(
  id: string,
  store: WriteOptions["store"],
  format: BatchFormat,
  belongs: (line: AnsweredLine) => boolean,
): AsyncGenerator<Uint8Array, void, undefined> {
  const encoder = new TextEncoder();
  let text = "";
  for (let after = 0, most = 1; ;) {
    const page = await store.answers(id, after, most);
    const last = page.at(-1);
    if (!last) break;
    for (const line of page.filter(belongs)) {
      text += `${format.write(line)}\n`;
      if (text.length < CHARACTERS_WRITTEN) continue;
      yield encoder.encode(text);
      text = "";
    }
    after = last.number;
    const length = page.reduce((sum, { answer }) => sum + (answer?.body.length ?? 0), 0);
    const fitting = Math.floor((CHARACTERS_AT_ONCE * page.length) / Math.max(1, length));
    most = Math.min(2 * most, ANSWERS_AT_ONCE, Math.max(1, fitting));
  }
  if (text !== "") yield encoder.encode(text);
}
