import { existsSync } from "node:fs";
import { rename } from "node:fs/promises";
import path from "node:path";
import type { Logger } from "pino";
import type { Config } from "../config/schema.ts";
import { ServiceError } from "../errors/service-error.ts";
import type { ServiceEvents } from "../events/service-events.ts";
import { makePrivateDatabase, makePrivateFolder } from "../files/file-operations.ts";
import { tryLock } from "../files/locks.ts";
import { BatchRunner } from "./batch-runner.ts";
import { type BatchBackend, batchEnded, BatchService } from "./batch-service.ts";
import type { BatchRecords, FileContents } from "./batch-store.ts";
import { type BatchFormat, newId, type RunLine, type RunOutcome } from "./batch.ts";
import { FileFolder } from "./file-store.ts";
import { LineScheduler } from "./line-scheduler.ts";
import { DamagedDatabase } from "./sqlite/database.ts";
import { SqliteBatchStore } from "./sqlite/sqlite-batch-store.ts";

const SWEEP_INTERVAL_MS = 10 * 60_000;

interface LocalBatchesOptions {
  readonly config: Pick<Config, "batches" | "cache_dir" | "http" | "models">;
  readonly formats: Readonly<Record<string, BatchFormat>>;
  readonly events: Pick<ServiceEvents, "emit">;
  readonly logger: Pick<Logger, "info" | "warn" | "error">;
  /** Called when a line is done. */
  readonly onLine: (outcome: RunOutcome) => void;
  /** Returns Unix milliseconds. */
  readonly now?: (() => number) | undefined;
}

type OpenBatches = BatchBackend & OpenedStore & { readonly runner: BatchRunner };

/** Lines run in addition to the slots, so that one is ready when a slot becomes free. */
const LINES_AHEAD = 2;

/**
 * Files and batches of this machine. Opens the store at the start if it exists, otherwise at the first use. Moves a
 * damaged store aside and begins a new one.
 */
export class LocalBatches extends BatchService {
  readonly #options: LocalBatchesOptions;
  readonly #folder: string;
  #runLine: RunLine | undefined;
  #open: Promise<OpenBatches> | undefined;
  #running: BatchRunner | undefined;
  #sweep: NodeJS.Timeout | undefined;
  #isClosed = false;
  /** Runs all lines of this machine. */
  readonly scheduler: LineScheduler;

  constructor(options: LocalBatchesOptions) {
    super({ ...options, config: options.config.batches });
    this.#options = options;
    this.#folder = path.join(options.config.cache_dir, "batches");
    this.scheduler = new LineScheduler(options.config.models.slots + LINES_AHEAD, this.now);
  }

  get running(): number {
    return this.#running?.running ?? 0;
  }

  async start(runLine: RunLine): Promise<void> {
    this.#runLine = runLine;
    if (!hasStore(this.#folder)) return;
    try {
      await this.#opened();
    } catch (error) {
      this.#options.logger.error({ err: error }, ServiceError.from(error).message);
    }
  }

  async stop(): Promise<void> {
    this.#isClosed = true;
    clearInterval(this.#sweep);
    await this.#running?.stop();
  }

  async close(): Promise<void> {
    await this.stop();
    const open = await this.#open?.catch(() => undefined);
    open?.close();
  }

  override async use<Result>(
    _id: string | undefined,
    action: (backend: BatchBackend) => Promise<Result>,
  ): Promise<Result> {
    const open = await this.#opened();
    try {
      return await action(open);
    } catch (error) {
      if (error instanceof DamagedDatabase) throw await this.#replaceDamaged(open, error);
      throw error;
    }
  }

  async #opened(): Promise<OpenBatches> {
    this.#open ??= this.#openStore();
    try {
      return await this.#open;
    } catch (error) {
      this.#open = undefined;
      throw error;
    }
  }

  async #openStore(): Promise<OpenBatches> {
    const { config, logger, formats, events, onLine } = this.#options;
    const runLine = this.#runLine;
    if (!runLine || this.#isClosed) throw new ServiceError("shutting_down", "The daemon is shutting down.");
    const opened = await openStore(this.#folder, this.now);
    const runner: BatchRunner = new BatchRunner({
      ...opened,
      formats,
      runLine,
      scheduler: this.scheduler,
      limits: { maxLines: config.batches.max_lines, maxLineBytes: config.http.body_limit },
      logger,
      onLine,
      onEnd: (batch) => events.emit(batchEnded(batch)),
      onDamage: (error) => void this.#replaceDamaged(open, error),
      now: this.now,
    });
    const maxTotalBytes = config.batches.max_total_size;
    const open: OpenBatches = { ...opened, runner, newId, maxTotalBytes, incoming: { bytes: 0 } };
    this.#running = runner;
    const sweep = async (): Promise<void> => {
      await removeExpired(opened, this.now(), config.batches.retention);
    };
    try {
      await sweep();
      await runner.resume();
    } catch (error) {
      if (error instanceof DamagedDatabase) throw await this.#replaceDamaged(open, error);
      void runner.stop();
      open.close();
      throw error;
    }
    clearInterval(this.#sweep);
    this.#sweep = setInterval(() => {
      sweep().catch((error: unknown) =>
        logger.warn({ err: error }, "Cannot remove expired files of batches now"),
      );
    }, SWEEP_INTERVAL_MS).unref();
    return open;
  }

  /** Moves the damaged store aside, once; the next use opens a new one. */
  async #replaceDamaged(open: OpenBatches, cause: DamagedDatabase): Promise<ServiceError> {
    if (this.#running !== open.runner)
      return new ServiceError("batch_store_unavailable", "The store of batches was damaged.", { cause });
    this.#running = undefined;
    this.#open = undefined;
    clearInterval(this.#sweep);
    void open.runner.stop();
    open.close();
    const error = await moveDamagedData(this.#folder, this.now(), cause);
    this.#options.logger.error({ err: error }, error.message);
    return error;
  }
}

const DATA = "data";
const DATABASE = "batches.db";
const LOCK = "daybreak.lock";

interface OpenedStore {
  readonly store: SqliteBatchStore;
  readonly folder: FileFolder;
  /** Closes the database and releases its lock. */
  close(): void;
}

/** Returns true if the folder contains a store. */
function hasStore(folder: string): boolean {
  return existsSync(path.join(folder, DATA, DATABASE));
}

/**
 * Opens the store of batches, or creates it.
 * @throws ServiceError batch_store_unavailable if another process has it, or if it was damaged and has been moved aside
 */
async function openStore(folder: string, now: () => number): Promise<OpenedStore> {
  await makePrivateFolder(folder);
  const lock = await tryLock(path.join(folder, LOCK));
  if (!lock) {
    throw new ServiceError(
      "batch_store_unavailable",
      `Another daemon has the batches in ${folder}. Ask that one, or start this one with another cache_dir.`,
    );
  }
  try {
    const data = path.join(folder, DATA);
    const database = path.join(data, DATABASE);
    await makePrivateFolder(data);
    const files = await FileFolder.open(path.join(data, "files"));
    await makePrivateDatabase(database);
    const store = await SqliteBatchStore.open(database, now);
    await files.removeAllExcept(await store.fileIds());
    return {
      store,
      folder: files,
      close() {
        store.close();
        lock[Symbol.dispose]();
      },
    };
  } catch (error) {
    lock[Symbol.dispose]();
    if (error instanceof DamagedDatabase) throw await moveDamagedData(folder, now(), error);
    throw error;
  }
}

/** Moves damaged data aside. Nothing may have it open. */
async function moveDamagedData(folder: string, time: number, cause: unknown): Promise<ServiceError> {
  const aside = path.join(folder, `damaged-${new Date(time).toISOString().replaceAll(/[:.]/g, "-")}`);
  const isMoved = await rename(path.join(folder, DATA), aside).then(
    () => true,
    () => false,
  );
  const advice = isMoved
    ? `It has been put aside as ${aside}, and a new one begins with the next request; create unfinished batches again.`
    : `Stop the daemon and move ${path.join(folder, DATA)} away.`;
  return new ServiceError("batch_store_unavailable", `The store of batches was damaged. ${advice}`, {
    cause,
  });
}

/** Removes expired files, except inputs of unfinished batches, and batches older than the retention. */
export async function removeExpired(
  { store, folder }: { readonly store: BatchRecords; readonly folder: Pick<FileContents, "remove"> },
  now: number,
  retentionMs: number,
): Promise<void> {
  const inUse = new Set((await store.unfinished()).map(({ inputFile }) => inputFile));
  for (const id of await store.expiredFiles(now)) {
    if (inUse.has(id)) continue;
    await store.removeFile(id);
    await folder.remove(id);
  }
  if (!Number.isFinite(retentionMs)) return;
  for (const id of await store.endedBefore(now - retentionMs)) await store.removeBatch(id);
}
