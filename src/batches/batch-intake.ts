import type { Config } from "../config/schema.ts";
import { ServiceError } from "../errors/service-error.ts";
import type { ServiceEvent, ServiceEvents } from "../events/service-events.ts";
import type { BatchRunner } from "./batch-runner.ts";
import type {
  Batches,
  BatchRecords,
  FileContent,
  FileContents,
  NewBatch,
  Page,
  PageQuery,
  ReceivedFile,
} from "./batch-store.ts";
import {
  type Batch,
  type FilePurpose,
  type NewId,
  type StoredFile,
  UNFINISHED,
  type Viewer,
} from "./batch.ts";

/** The window that both APIs promise. */
const WINDOW_MS = 24 * 3_600_000;

interface DeskOptions {
  readonly store: BatchRecords;
  readonly folder: FileContents;
  readonly config: Config["batches"];
  readonly events: Pick<ServiceEvents, "emit">;
  /** Leads batches through their lives. */
  readonly runner: Pick<BatchRunner, "take" | "cancel" | "waiting">;
  readonly newId: NewId;
  /** Unix milliseconds. */
  readonly now: () => number;
}

/** What the routes ask of one store of files and batches, and what they are refused. */
export class BatchDesk implements Omit<Batches, "maxFileBytes" | "maxLines"> {
  readonly #options: DeskOptions;
  /** Of files that have not been kept yet. */
  readonly #arriving = { bytes: 0 };

  constructor(options: DeskOptions) {
    this.#options = options;
  }

  async receive(pieces: AsyncIterable<Uint8Array> | Iterable<Uint8Array>): Promise<ReceivedFile> {
    const { config } = this.#options;
    return await receiveFile(pieces, { ...this.#options, limits: config, arriving: this.#arriving });
  }

  async file(viewer: Viewer, id: string, purposes: readonly FilePurpose[]): Promise<StoredFile> {
    const file = await this.#options.store.file(id, viewer);
    if (file && purposes.includes(file.purpose) && file.expiresAt > this.#options.now()) return file;
    throw new ServiceError(
      "file_not_found",
      `There is no file with the id "${id.slice(0, 100)}", or no longer.`,
    );
  }

  async files(query: PageQuery & { readonly purposes: readonly FilePurpose[] }): Promise<Page<StoredFile>> {
    return await this.#options.store.files(query);
  }

  async content(viewer: Viewer, id: string, purposes: readonly FilePurpose[]): Promise<FileContent> {
    const file = await this.file(viewer, id, purposes);
    const { folder } = this.#options;
    // As long as the client has no part of it, it can be told.
    await folder.check(id, file.bytes);
    return { size: file.bytes, etag: file.id, read: (start, end) => folder.stream(id, start, end) };
  }

  async deleteFile(viewer: Viewer, id: string, purposes: readonly FilePurpose[]): Promise<void> {
    const { store } = this.#options;
    await this.file(viewer, id, purposes);
    const user = (await store.unfinished()).find(({ inputFile }) => inputFile === id);
    if (user) {
      throw new ServiceError(
        "batch_conflict",
        `The file is the input of the batch ${user.id}, which is not over; cancel the batch first.`,
      );
    }
    await this.#remove(id);
  }

  async create({ viewer, idKind, inputFile, ...wish }: NewBatch): Promise<Batch> {
    const { store, runner, config, events, newId, now } = this.#options;
    const createdAt = now();
    const { retention } = config;
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
    await store.addBatch(batch);
    runner.take(batch);
    events.emit({ type: "batch-created", batch: batch.id });
    return batch;
  }

  async batch(viewer: Viewer, api: string, id: string): Promise<Batch> {
    const batch = await this.#options.store.batch(id, viewer);
    if (batch?.api === api) return await this.#withWaiting(batch);
    throw new ServiceError(
      "batch_not_found",
      `There is no batch with the id "${id.slice(0, 100)}", or no longer.`,
    );
  }

  async batches(query: PageQuery & { readonly api: string }): Promise<Page<Batch>> {
    const { items, hasMore } = await this.#options.store.batches(query);
    return { items: await Promise.all(items.map(async (each) => await this.#withWaiting(each))), hasMore };
  }

  async cancel(viewer: Viewer, api: string, id: string): Promise<Batch> {
    await this.batch(viewer, api, id);
    return await this.#options.runner.cancel(id);
  }

  async deleteBatch(viewer: Viewer, api: string, id: string): Promise<void> {
    const { status, inputFile, outputFile, errorFile } = await this.batch(viewer, api, id);
    if (UNFINISHED.includes(status))
      throw new ServiceError("batch_conflict", `The batch ${id} is not over; cancel it first.`);
    const files = [inputFile, outputFile, errorFile].filter((each) => each !== undefined);
    for (const file of files) await this.#remove(file);
    await this.#options.store.removeBatch(id);
  }

  async #withWaiting(batch: Batch): Promise<Batch> {
    if (batch.status !== "in_progress") return batch;
    return { ...batch, waiting: await this.#options.runner.waiting(batch.id) };
  }

  async #remove(file: string): Promise<void> {
    await this.#options.store.removeFile(file);
    await this.#options.folder.remove(file);
  }
}

/** What is told of a batch that is over. */
export function batchEnded({ id, status, total, counts }: Batch): ServiceEvent & { type: "batch-ended" } {
  return { type: "batch-ended", batch: id, status, lines: total, failed: total - counts.succeeded };
}

interface ReceiveOptions {
  readonly store: Pick<BatchRecords, "storedBytes" | "addFile">;
  readonly folder: Pick<FileContents, "write" | "remove">;
  readonly newId: NewId;
  readonly limits: Pick<Config["batches"], "max_file_size" | "max_total_size" | "retention">;
  /** Of all files that have not been kept yet. */
  readonly arriving: { bytes: number };
  readonly now: () => number;
}

/** Writes a file that arrives to the disk, piece by piece. Until it is kept, nothing knows of it. */
export async function receiveFile(
  pieces: AsyncIterable<Uint8Array> | Iterable<Uint8Array>,
  { store, folder, newId, limits, arriving, now }: ReceiveOptions,
): Promise<ReceivedFile> {
  const room = limits.max_total_size - (await store.storedBytes());
  const id = newId("file");
  let held = 0;
  const hold = (change: number): void => {
    held += change;
    arriving.bytes += change;
    if (arriving.bytes > room) throw tooMuch(limits);
  };
  const release = (): void => {
    arriving.bytes -= held;
    held = 0;
  };
  const bytes = await folder.write(id, bounded(pieces, hold, limits)).catch((error: unknown) => {
    release();
    throw error;
  });
  let isKept = false;
  return {
    bytes,
    async keep({ viewer, purpose, name, lifeMs = limits.retention }) {
      // Others may have been kept since it began to arrive.
      if ((await store.storedBytes()) + bytes > limits.max_total_size) throw tooMuch(limits);
      const createdAt = now();
      const expiresAt = createdAt + Math.min(lifeMs, limits.retention);
      const file = { id, owner: viewer ?? "", purpose, name, bytes, createdAt, expiresAt };
      await store.addFile(file);
      isKept = true;
      release();
      return file;
    },
    async [Symbol.asyncDispose]() {
      release();
      // What stays is swept later: why it was not kept is what its client has to be told.
      if (!isKept) await folder.remove(id).catch(() => undefined);
    },
  };
}

async function* bounded(
  pieces: AsyncIterable<Uint8Array> | Iterable<Uint8Array>,
  hold: (bytes: number) => void,
  { max_file_size: maxBytes }: ReceiveOptions["limits"],
): AsyncGenerator<Uint8Array, void, undefined> {
  let bytes = 0;
  for await (const piece of pieces) {
    bytes += piece.byteLength;
    if (bytes > maxBytes) {
      throw new ServiceError(
        "payload_too_large",
        `The file is larger than the limit of ${maxBytes} bytes (batches.max_file_size).`,
      );
    }
    hold(piece.byteLength);
    yield piece;
  }
}

function tooMuch({ max_total_size: total }: ReceiveOptions["limits"]): ServiceError {
  return new ServiceError(
    "insufficient_disk",
    `The files of all batches together may take ${total} bytes (batches.max_total_size), which this one would exceed; delete some first.`,
  );
}
