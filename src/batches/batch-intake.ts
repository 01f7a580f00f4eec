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
  UNFINISHED_STATUSES,
  type Viewer,
} from "./batch.ts";

/** Completion window of both APIs. */
const COMPLETION_WINDOW_MS = 24 * 3_600_000;

interface BatchServiceOptions {
  readonly store: BatchRecords;
  readonly folder: FileContents;
  readonly config: Config["batches"];
  readonly events: Pick<ServiceEvents, "emit">;
  /** Runs the batches. */
  readonly runner: Pick<BatchRunner, "start" | "cancel" | "waitingReason">;
  readonly newId: NewId;
  /** Unix milliseconds. */
  readonly now: () => number;
}

/** Files and batches of one store, with the checks that all stores share. */
export class BatchService implements Omit<Batches, "maxFileBytes" | "maxLines"> {
  readonly #options: BatchServiceOptions;
  /** Bytes of received files that have not been stored yet. */
  readonly #incoming = { bytes: 0 };

  constructor(options: BatchServiceOptions) {
    this.#options = options;
  }

  async receive(chunks: AsyncIterable<Uint8Array> | Iterable<Uint8Array>): Promise<ReceivedFile> {
    const { config } = this.#options;
    return await receiveFile(chunks, { ...this.#options, limits: config, incoming: this.#incoming });
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
    // After the response has begun, an error could not be sent any more.
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
    await this.#removeFile(id);
  }

  async create({ viewer, idKind, inputFile, ...fields }: NewBatch): Promise<Batch> {
    const { store, runner, config, events, newId, now } = this.#options;
    const createdAt = now();
    const { retention } = config;
    const batch: Batch = {
      ...fields,
      id: newId(idKind),
      owner: viewer ?? "",
      inputFile: inputFile.id,
      status: "validating",
      times: {},
      createdAt,
      expiresAt: createdAt + COMPLETION_WINDOW_MS,
      outputLifeMs: Math.min(fields.outputLifeMs ?? retention, retention),
      problems: [],
      total: 0,
      counts: { succeeded: 0, errored: 0, cancelled: 0, expired: 0 },
      usage: { inputTokens: 0, cachedTokens: 0, outputTokens: 0, reasoningTokens: 0 },
    };
    await store.addBatch(batch);
    runner.start(batch);
    events.emit({ type: "batch-created", batch: batch.id });
    return batch;
  }

  async batch(viewer: Viewer, api: string, id: string): Promise<Batch> {
    const batch = await this.#options.store.batch(id, viewer);
    if (batch?.api === api) return await this.#withWaitingReason(batch);
    throw new ServiceError(
      "batch_not_found",
      `There is no batch with the id "${id.slice(0, 100)}", or no longer.`,
    );
  }

  async batches(query: PageQuery & { readonly api: string }): Promise<Page<Batch>> {
    const { items, hasMore } = await this.#options.store.batches(query);
    return {
      items: await Promise.all(items.map(async (each) => await this.#withWaitingReason(each))),
      hasMore,
    };
  }

  async cancel(viewer: Viewer, api: string, id: string): Promise<Batch> {
    await this.batch(viewer, api, id);
    return await this.#options.runner.cancel(id);
  }

  async deleteBatch(viewer: Viewer, api: string, id: string): Promise<void> {
    const { status, inputFile, outputFile, errorFile } = await this.batch(viewer, api, id);
    if (UNFINISHED_STATUSES.includes(status))
      throw new ServiceError("batch_conflict", `The batch ${id} is not over; cancel it first.`);
    const files = [inputFile, outputFile, errorFile].filter((each) => each !== undefined);
    for (const file of files) await this.#removeFile(file);
    await this.#options.store.removeBatch(id);
  }

  async #withWaitingReason(batch: Batch): Promise<Batch> {
    if (batch.status !== "in_progress") return batch;
    return { ...batch, waiting: await this.#options.runner.waitingReason(batch.id) };
  }

  async #removeFile(file: string): Promise<void> {
    await this.#options.store.removeFile(file);
    await this.#options.folder.remove(file);
  }
}

/** Returns the event of a finished batch. */
export function batchEnded({ id, status, total, counts }: Batch): ServiceEvent & { type: "batch-ended" } {
  return { type: "batch-ended", batch: id, status, lines: total, failed: total - counts.succeeded };
}

interface ReceiveOptions {
  readonly store: Pick<BatchRecords, "storedBytes" | "addFile">;
  readonly folder: Pick<FileContents, "write" | "remove">;
  readonly newId: NewId;
  readonly limits: Pick<Config["batches"], "max_file_size" | "max_total_size" | "retention">;
  /** Bytes of all received files that have not been stored yet. */
  readonly incoming: { bytes: number };
  readonly now: () => number;
}

/** Writes a received file chunk by chunk. No record refers to it until it is stored. */
export async function receiveFile(
  chunks: AsyncIterable<Uint8Array> | Iterable<Uint8Array>,
  { store, folder, newId, limits, incoming, now }: ReceiveOptions,
): Promise<ReceivedFile> {
  const availableBytes = limits.max_total_size - (await store.storedBytes());
  const id = newId("file");
  let reserved = 0;
  const reserve = (change: number): void => {
    reserved += change;
    incoming.bytes += change;
    if (incoming.bytes > availableBytes) throw totalSizeError(limits);
  };
  const release = (): void => {
    incoming.bytes -= reserved;
    reserved = 0;
  };
  const bytes = await folder.write(id, limitSize(chunks, reserve, limits)).catch((error: unknown) => {
    release();
    throw error;
  });
  let isStored = false;
  return {
    bytes,
    async store({ viewer, purpose, name, lifetimeMs = limits.retention }) {
      // Other files may have been stored since this upload began.
      if ((await store.storedBytes()) + bytes > limits.max_total_size) throw totalSizeError(limits);
      const createdAt = now();
      const expiresAt = createdAt + Math.min(lifetimeMs, limits.retention);
      const file = { id, owner: viewer ?? "", purpose, name, bytes, createdAt, expiresAt };
      await store.addFile(file);
      isStored = true;
      release();
      return file;
    },
    async [Symbol.asyncDispose]() {
      release();
      // A failure here must not hide the error of the request; the content is swept later.
      if (!isStored) await folder.remove(id).catch(() => undefined);
    },
  };
}

async function* limitSize(
  chunks: AsyncIterable<Uint8Array> | Iterable<Uint8Array>,
  reserve: (bytes: number) => void,
  { max_file_size: maxBytes }: ReceiveOptions["limits"],
): AsyncGenerator<Uint8Array, void, undefined> {
  let bytes = 0;
  for await (const chunk of chunks) {
    bytes += chunk.byteLength;
    if (bytes > maxBytes) {
      throw new ServiceError(
        "payload_too_large",
        `The file is larger than the limit of ${maxBytes} bytes (batches.max_file_size).`,
      );
    }
    reserve(chunk.byteLength);
    yield chunk;
  }
}

function totalSizeError({ max_total_size: total }: ReceiveOptions["limits"]): ServiceError {
  return new ServiceError(
    "insufficient_disk",
    `The files of all batches together may take ${total} bytes (batches.max_total_size), which this one would exceed; delete some first.`,
  );
}
