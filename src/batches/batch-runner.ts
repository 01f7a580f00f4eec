import { setTimeout as sleep } from "node:timers/promises";
import type { Logger } from "pino";
import { MAX_TIMER_MS } from "../async/timers.ts";
import { ServiceError } from "../errors/service-error.ts";
import type { BatchWorker } from "./batch-service.ts";
import type { BatchRecords, FileContents } from "./batch-store.ts";
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
import type { LineScheduler } from "./line-scheduler.ts";
import { LineRunner, type LineRunnerOptions } from "./run-line.ts";
import { DamagedDatabase } from "./sqlite/database.ts";
import type { SqliteBatchStore } from "./sqlite/sqlite-batch-store.ts";

/** Delay before a batch continues after a failure of its store or disk. */
const RETRY_DELAY_MS = 10_000;

interface BatchRunnerOptions {
  readonly store: SqliteBatchStore;
  readonly folder: FileFolder;
  readonly formats: Readonly<Record<string, BatchFormat>>;
  readonly runLine: RunLine;
  /** Runs the lines. */
  readonly scheduler: LineScheduler;
  readonly limits: { readonly maxLines: number; readonly maxLineBytes: number };
  readonly logger: Pick<Logger, "info" | "warn" | "error">;
  /** Called when a line is done. */
  readonly onLine: (outcome: RunOutcome) => void;
  /** Called when a batch is finished. */
  readonly onEnd: (batch: Batch) => void;
  /** Called when the store turns out to be damaged; the runner stops then. */
  readonly onDamage: (error: DamagedDatabase) => void;
  /** Unix milliseconds. */
  readonly now: () => number;
}

interface BatchJob {
  /** Aborts when no more lines are to run: the batch is cancelled, has expired, or the runner stops. */
  readonly stop: AbortController;
  readonly done: Promise<void>;
}

/** Takes batches from status to status until they end. Continues from whatever status the store has. */
export class BatchRunner implements BatchWorker {
  readonly #options: BatchRunnerOptions;
  readonly #jobs = new Map<string, BatchJob>();
  readonly #stopping = new AbortController();
  /** Line runners of batches in progress, by batch id. */
  readonly #lineRunners = new Map<string, LineRunner>();

  constructor(options: BatchRunnerOptions) {
    this.#options = options;
  }

  /** Number of unfinished batches. */
  get running(): number {
    return this.#jobs.size;
  }

  /** Continues all unfinished batches. */
  async resume(): Promise<void> {
    for (const batch of await this.#options.store.unfinished()) this.start(batch);
  }

  /** Runs a batch to its end. */
  start({ id, expiresAt }: Batch): void {
    if (this.#jobs.has(id) || this.#stopping.signal.aborted) return;
    const stop = new AbortController();
    const timeoutMs = Math.min(Math.max(0, expiresAt - this.#options.now()), MAX_TIMER_MS);
    const timer = setTimeout(() => stop.abort(), timeoutMs).unref();
    const done = this.#advance(id, stop.signal).finally(() => {
      clearTimeout(timer);
      this.#jobs.delete(id);
    });
    this.#jobs.set(id, { stop, done });
  }

  cancelled(id: string): void {
    this.#jobs.get(id)?.stop.abort();
  }

  /** Returns why a batch waits, for clients; undefined if it does not. */
  async waitingReason(id: string): Promise<string | undefined> {
    return this.#lineRunners.get(id)?.waitingReason;
  }

  /** Stops running lines, which continue in the next runner. */
  async stop(): Promise<void> {
    this.#stopping.abort();
    const jobs = [...this.#jobs.values()];
    for (const { stop } of jobs) stop.abort();
    await Promise.all(jobs.map(({ done }) => done));
  }

  /** Never rejects. */
  async #advance(id: string, stop: AbortSignal): Promise<void> {
    const { store, logger } = this.#options;
    while (!this.#stopping.signal.aborted) {
      try {
        const batch = await store.batch(undefined, id);
        if (!batch || (await this.#step(batch, stop))) return;
      } catch (error) {
        if (error instanceof DamagedDatabase) return this.#options.onDamage(error);
        const { code, message } = ServiceError.from(error);
        if (code === "batch_store_unavailable") return;
        logger.warn({ batch: id, err: error }, `A batch waits for ${RETRY_DELAY_MS / 1000} s: ${message}`);
        await sleep(RETRY_DELAY_MS, undefined, { signal: this.#stopping.signal, ref: false }).catch(
          () => undefined,
        );
      }
    }
  }

  /** Takes a batch to its next status; returns true if that is its last. */
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
    // An earlier process may have been interrupted here.
    await store.deleteLines(batch.id);
    const { total, problems } = await readInput(batch, folder.read(batch.inputFile), {
      addLines: async (lines) => await store.addLines(batch.id, lines),
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
    const { store, formats, now } = this.#options;
    const queue = new LineQueue(store, batch.id);
    const saveAnswer: LineRunnerOptions["saveAnswer"] = async (...answer) =>
      await store.saveAnswer(batch.id, ...answer);
    const runner = new LineRunner(batch, formatOf(formats, batch), { ...this.#options, saveAnswer }, stop);
    this.#lineRunners.set(batch.id, runner);
    try {
      await this.#options.scheduler.run({
        owner: batch.owner,
        queue,
        signal: stop,
        run: async (attempt) => await runner.run(attempt),
      });
    } finally {
      this.#lineRunners.delete(batch.id);
    }
    if (this.#stopping.signal.aborted) return;
    const hasExpired = stop.aborted && now() >= batch.expiresAt;
    if (stop.aborted && !hasExpired) return;
    const endsAs = hasExpired ? "expired" : "completed";
    await store.change(batch.id, ["in_progress"], { status: "finalizing", endsAs });
  }

  async #finish({ id }: Batch, endsAs: FinalStatus): Promise<void> {
    const { store, formats } = this.#options;
    if (endsAs === "cancelled" || endsAs === "expired") await store.answerRemaining(id, endsAs);
    const batch = await store.batch(undefined, id);
    if (!batch) return;
    const format = formatOf(formats, batch);
    const { output, errors } = await writeOutput(batch, {
      ...this.#options,
      format,
      answers: async (after, limit) => await store.answers(id, after, limit),
    });
    const files = [output, errors].filter((file) => file !== undefined);
    const { succeeded, errored, cancelled, expired } = batch.counts;
    // A batch that was cancelled while its input was read has no total yet.
    const total = succeeded + errored + cancelled + expired;
    const change = { status: endsAs, total, outputFile: output?.id, errorFile: errors?.id };
    let ended: Batch;
    try {
      ended = await store.finish(id, change, files);
    } catch (error) {
      await removeUnrecorded(files, this.#options);
      throw error;
    }
    this.#options.onEnd(ended);
  }
}

/** Maximum answers read at once; long ones, such as embeddings of many megabytes, are limited by characters. */
const MAX_PAGE_ANSWERS = 32;
const MAX_PAGE_CHARACTERS = 16 * 1024 * 1024;
/** Short lines are written together in chunks of this length. */
const CHUNK_CHARACTERS = 256 * 1024;

interface WriteOptions {
  readonly store: Pick<BatchRecords, "file">;
  /** Returns answered lines in the order of the input. */
  readonly answers: (afterNumber: number, limit: number) => Promise<readonly AnsweredLine[]>;
  readonly folder: Pick<FileContents, "write" | "remove">;
  readonly format: BatchFormat;
  /** Returns the id of a new output file. */
  readonly newFileId?: () => string;
  readonly now: () => number;
}

interface WrittenOutput {
  readonly output?: StoredFile;
  readonly errors?: StoredFile;
}

/**
 * Writes the answers of a batch to files, in the order of the input. The files are durable, but no record refers to
 * them until the store has them, so this can be repeated after any interruption.
 */
export async function writeOutput(batch: Batch, options: WriteOptions): Promise<WrittenOutput> {
  const { separatesErrors } = options.format;
  if (!separatesErrors) return { output: await writeFile(batch, options, "results", "results", () => true) };
  const { succeeded, errored, cancelled, expired } = batch.counts;
  const output =
    succeeded > 0
      ? await writeFile(batch, options, "batch_output", "output", ({ outcome }) => outcome === "succeeded")
      : undefined;
  try {
    const errors =
      errored + cancelled + expired > 0
        ? await writeFile(batch, options, "batch_output", "error", ({ outcome }) => outcome !== "succeeded")
        : undefined;
    return { ...(output && { output }), ...(errors && { errors }) };
  } catch (error) {
    await removeUnrecorded(output ? [output] : [], options);
    throw error;
  }
}

/** Removes files that no record refers to: after repeated failures they would fill the disk. */
export async function removeUnrecorded(
  files: readonly StoredFile[],
  { store, folder }: Pick<WriteOptions, "store" | "folder">,
): Promise<void> {
  for (const { id } of files) if (!(await store.file(undefined, id))) await folder.remove(id);
}

async function writeFile(
  { id: batch, owner, outputLifeMs }: Batch,
  { answers, folder, format, now, newFileId = () => newId("file") }: WriteOptions,
  purpose: FilePurpose,
  kind: string,
  isIncluded: (line: AnsweredLine) => boolean,
): Promise<StoredFile> {
  const id = newFileId();
  const createdAt = now();
  const bytes = await folder.write(id, outputChunks(answers, format, isIncluded));
  const name = `${batch}_${kind}.jsonl`;
  return { id, owner, purpose, name, bytes, createdAt, expiresAt: createdAt + outputLifeMs };
}

async function* outputChunks(
  answers: WriteOptions["answers"],
  format: BatchFormat,
  isIncluded: (line: AnsweredLine) => boolean,
): AsyncGenerator<Uint8Array, void, undefined> {
  const encoder = new TextEncoder();
  let text = "";
  for (let after = 0, pageSize = 1; ;) {
    const page = await answers(after, pageSize);
    const last = page.at(-1);
    if (!last) break;
    for (const line of page.filter(isIncluded)) {
      text += `${format.formatAnswer(line)}\n`;
      if (text.length < CHUNK_CHARACTERS) continue;
      yield encoder.encode(text);
      text = "";
    }
    after = last.number;
    const length = page.reduce((sum, { answer }) => sum + (answer?.body.length ?? 0), 0);
    const fitting = Math.floor((MAX_PAGE_CHARACTERS * page.length) / Math.max(1, length));
    pageSize = Math.min(2 * pageSize, MAX_PAGE_ANSWERS, Math.max(1, fitting));
  }
  if (text !== "") yield encoder.encode(text);
}
