import path from "node:path";
import type { Logger } from "pino";
import type { Config } from "../config/schema.ts";
import { ServiceError } from "../errors/service-error.ts";
import type { ServiceEvents } from "../events/service-events.ts";
import type { BatchFormat, RunLine } from "./batch-format.ts";
import { BatchRunner } from "./batch-runner.ts";
import type { Page, PageQuery } from "./batch-store.ts";
import type { Batch, FilePurpose, RunOutcome, StoredFile, Viewer } from "./batch.ts";
import { UNFINISHED } from "./batch.ts";
import type { Batches, FileContent, NewBatch, ReceivedFile } from "./batches.ts";
import { newId } from "./new-id.ts";
import { hasStore, type OpenedStore, openStore, putAside } from "./open-room.ts";
import { receiveFile } from "./receive-file.ts";
import { DamagedDatabase } from "./sqlite/database.ts";
import { removeExpired } from "./remove-expired.ts";

/** The window that both APIs promise. */
const WINDOW_MS = 24 * 3_600_000;
const SWEEP_MS = 10 * 60_000;

export interface BatchRoomOptions {
  readonly config: Pick<Config, "batches" | "cache_dir" | "http" | "models">;
  readonly formats: Readonly<Record<string, BatchFormat>>;
  readonly events: Pick<ServiceEvents, "emit">;
  readonly logger: Pick<Logger, "info" | "warn" | "error">;
  /** Told when a line is done. */
  readonly onLine: (outcome: RunOutcome) => void;
  /** Unix milliseconds. */
  readonly now?: () => number;
}

interface Open extends OpenedStore {
  readonly runner: BatchRunner;
}

/** More lines than slots, so that the next one is there when a slot becomes free. */
const LINES_AHEAD = 2;

/**
 * Files and batches of this machine. The store is opened with the first use, or at the start if there is one. A store that
 * turns out to be damaged is put aside.
 */
export class BatchRoom implements Batches {
  readonly #options: BatchRoomOptions;
  readonly #folder: string;
  readonly #now: () => number;
  #runLine: RunLine | undefined;
  #open: Promise<Open> | undefined;
  #running: BatchRunner | undefined;
  #sweep: NodeJS.Timeout | undefined;
  #isClosed = false;
  /** Of files that have not been kept yet. */
  readonly #arriving = { bytes: 0 };

  constructor(options: BatchRoomOptions) {
    this.#options = options;
    this.#folder = path.join(options.config.cache_dir, "batches");
    this.#now = options.now ?? Date.now;
  }

  get maxFileBytes(): number {
    return this.#options.config.batches.max_file_size;
  }

  get maxLines(): number {
    return this.#options.config.batches.max_lines;
  }

  /** Batches that are not over. */
  get running(): number {
    return this.#running?.running ?? 0;
  }

  /** Goes on with what is not over. Must be called before anything else. */
  async start(runLine: RunLine): Promise<void> {
    this.#runLine = runLine;
    if (!hasStore(this.#folder)) return;
    try {
      await this.#opened();
    } catch (error) {
      this.#options.logger.error({ err: error }, ServiceError.from(error).message);
    }
  }

  /** Stops running lines: they go on after the next start. */
  async stop(): Promise<void> {
    this.#isClosed = true;
    clearInterval(this.#sweep);
    await this.#running?.stop();
  }

  /** Stops, and closes the store. */
  async close(): Promise<void> {
    await this.stop();
    const open = await this.#open?.catch(() => undefined);
    open?.close();
  }

  async receive(pieces: AsyncIterable<Uint8Array> | Iterable<Uint8Array>): Promise<ReceivedFile> {
    return await this.#use(async (open) =>
      receiveFile(pieces, {
        ...open,
        limits: this.#options.config.batches,
        arriving: this.#arriving,
        now: this.#now,
      }),
    );
  }

  async file(viewer: Viewer, id: string, purposes: readonly FilePurpose[]): Promise<StoredFile> {
    const file = await this.#use(async ({ store }) => await store.file(id, viewer));
    if (file && purposes.includes(file.purpose) && file.expiresAt > this.#now()) return file;
    throw new ServiceError(
      "file_not_found",
      `There is no file with the id "${id.slice(0, 100)}", or no longer.`,
    );
  }

  async files(query: PageQuery & { readonly purposes: readonly FilePurpose[] }): Promise<Page<StoredFile>> {
    return await this.#use(async ({ store }) => await store.files(query));
  }

  async content(viewer: Viewer, id: string, purposes: readonly FilePurpose[]): Promise<FileContent> {
    const file = await this.file(viewer, id, purposes);
    const { folder } = await this.#opened();
    return { size: file.bytes, etag: file.id, read: (start, end) => folder.stream(id, start, end) };
  }

  async deleteFile(viewer: Viewer, id: string, purposes: readonly FilePurpose[]): Promise<void> {
    await this.file(viewer, id, purposes);
    await this.#use(async ({ store, folder }) => {
      const user = (await store.unfinished()).find(({ inputFile }) => inputFile === id);
      if (user) {
        throw new ServiceError(
          "batch_conflict",
          `The file is the input of the batch ${user.id}, which is not over; cancel the batch first.`,
        );
      }
      await store.removeFile(id);
      await folder.remove(id);
    });
  }

  async create({ viewer, idKind, inputFile, ...wish }: NewBatch): Promise<Batch> {
    const createdAt = this.#now();
    const { retention } = this.#options.config.batches;
    const batch: Batch = {
      ...wish,
      id: newId(idKind),
      owner: viewer ?? "",
      inputFile: inputFile.id,
      status: "validating",
      times: {},
      createdAt,
      expiresAt: createdAt + WINDOW_MS,
      outputLifeMs: Math.min(wish.outputLifeMs ?? retention, retention),
      problems: [],
      total: 0,
      counts: { succeeded: 0, errored: 0, cancelled: 0, expired: 0 },
      usage: { inputTokens: 0, cachedTokens: 0, outputTokens: 0, reasoningTokens: 0 },
    };
    await this.#use(async ({ store, runner }) => {
      await store.addBatch(batch);
      runner.take(batch);
    });
    this.#options.events.emit({ type: "batch-created", batch: batch.id });
    return batch;
  }

  async batch(viewer: Viewer, api: string, id: string): Promise<Batch> {
    const batch = await this.#use(async ({ store }) => await store.batch(id, viewer));
    if (batch?.api === api) return batch;
    throw new ServiceError(
      "batch_not_found",
      `There is no batch with the id "${id.slice(0, 100)}", or no longer.`,
    );
  }

  async batches(query: PageQuery & { readonly api: string }): Promise<Page<Batch>> {
    return await this.#use(async ({ store }) => await store.batches(query));
  }

  async cancel(viewer: Viewer, api: string, id: string): Promise<Batch> {
    await this.batch(viewer, api, id);
    return await this.#use(async ({ runner }) => await runner.cancel(id));
  }

  async deleteBatch(viewer: Viewer, api: string, id: string): Promise<void> {
    const { status, inputFile, outputFile, errorFile } = await this.batch(viewer, api, id);
    if (UNFINISHED.includes(status))
      throw new ServiceError("batch_conflict", `The batch ${id} is not over; cancel it first.`);
    await this.#use(async ({ store, folder }) => {
      await store.removeBatch(id);
      for (const file of [inputFile, outputFile, errorFile].filter((each) => each !== undefined)) {
        await store.removeFile(file);
        await folder.remove(file);
      }
    });
  }

  async #use<Result>(action: (open: Open) => Promise<Result>): Promise<Result> {
    const open = await this.#opened();
    try {
      return await action(open);
    } catch (error) {
      if (error instanceof DamagedDatabase) throw await this.#abandon(open, error);
      throw error;
    }
  }

  async #opened(): Promise<Open> {
    this.#open ??= this.#openNow();
    try {
      return await this.#open;
    } catch (error) {
      this.#open = undefined;
      throw error;
    }
  }

  async #openNow(): Promise<Open> {
    const { config, logger, formats, events, onLine } = this.#options;
    const runLine = this.#runLine;
    if (!runLine || this.#isClosed) throw new ServiceError("shutting_down", "The daemon is shutting down.");
    const opened = await openStore(this.#folder, this.#now);
    const runner: BatchRunner = new BatchRunner({
      ...opened,
      formats,
      runLine,
      capacity: config.models.slots + LINES_AHEAD,
      limits: { maxLines: config.batches.max_lines, maxLineBytes: config.http.body_limit },
      logger,
      onLine,
      onEnd: ({ id, status, total, counts }) =>
        events.emit({
          type: "batch-ended",
          batch: id,
          status,
          lines: total,
          failed: total - counts.succeeded,
        }),
      onDamage: (error) => void this.#abandon(open, error),
      now: this.#now,
    });
    const open: Open = { ...opened, runner };
    this.#running = runner;
    const sweep = async (): Promise<void> => {
      await removeExpired(opened, this.#now(), config.batches.retention);
    };
    try {
      await sweep();
      await runner.resume();
    } catch (error) {
      if (error instanceof DamagedDatabase) throw await this.#abandon(open, error);
      void runner.stop();
      open.close();
      throw error;
    }
    clearInterval(this.#sweep);
    this.#sweep = setInterval(() => {
      sweep().catch((error: unknown) => logger.warn({ err: error }, "Expired files of batches stay for now"));
    }, SWEEP_MS).unref();
    return open;
  }

  /** The store is damaged: puts it aside, once; the next use begins a new one. */
  async #abandon(open: Open, cause: DamagedDatabase): Promise<ServiceError> {
    if (this.#running !== open.runner)
      return new ServiceError("batch_store_unavailable", "The store of batches was damaged.", { cause });
    this.#running = undefined;
    this.#open = undefined;
    clearInterval(this.#sweep);
    void open.runner.stop();
    open.close();
    const error = await putAside(this.#folder, this.#now(), cause);
    this.#options.logger.error({ err: error }, error.message);
    return error;
  }
}
