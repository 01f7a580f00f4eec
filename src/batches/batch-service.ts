import type { Config } from "../config/schema.ts";
import { ServiceError } from "../errors/service-error.ts";
import type { ServiceEvent, ServiceEvents } from "../events/service-events.ts";
import type {
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
  NO_USAGE,
  type RunLine,
  type StoredFile,
  UNFINISHED_STATUSES,
  type Viewer,
} from "./batch.ts";

/** Completion window of both APIs. */
const COMPLETION_WINDOW_MS = 24 * 3_600_000;

/** Runs the batches of a backend. */
export interface BatchWorker {
  /** Runs a batch to its end. */
  start(batch: Batch): void;
  /** Stops the lines of a batch that has just been cancelled. */
  cancelled(id: string): void;
  /** Returns why a batch waits, for clients; undefined if it does not. */
  waitingReason(id: string): Promise<string | undefined>;
}

/** Store of files and batches, and what runs them. */
export interface BatchBackend {
  readonly store: BatchRecords;
  readonly folder: FileContents;
  readonly runner: BatchWorker;
  readonly newId: NewId;
  /** Maximum bytes of all files and answers. */
  readonly maxTotalBytes: number;
  /** Bytes of received files that have not been stored yet. */
  readonly incoming: { bytes: number };
}

export interface BatchServiceOptions {
  readonly config: Config["batches"];
  readonly events: Pick<ServiceEvents, "emit">;
  /** Returns Unix milliseconds. */
  readonly now?: (() => number) | undefined;
}

/** Files and batches as the routes use them. Items of other viewers are reported as missing. */
export abstract class BatchService {
  readonly #config: Config["batches"];
  readonly #events: Pick<ServiceEvents, "emit">;
  protected readonly now: () => number;

  constructor({ config, events, now = Date.now }: BatchServiceOptions) {
    this.#config = config;
    this.#events = events;
    this.now = now;
  }

  /** Number of unfinished batches, except those that other machines lead. */
  abstract get running(): number;

  /** Continues unfinished batches. Must be called before anything else. */
  abstract start(runLine: RunLine): Promise<void>;

  /** Stops running lines; they continue after the next start, or on other machines. */
  abstract stop(): Promise<void>;

  /** Stops, and closes the store. */
  abstract close(): Promise<void>;

  /** Runs an action on the backend of an item; without an id, on that of new files. */
  abstract use<Result>(
    id: string | undefined,
    action: (backend: BatchBackend) => Promise<Result>,
  ): Promise<Result>;

  /** Lists one page of items, which `read` reads from a backend. */
  protected async list<Item extends { readonly id: string }>(
    query: PageQuery,
    read: (backend: BatchBackend, query: PageQuery) => Promise<Page<Item>>,
  ): Promise<Page<Item>> {
    return await this.use(undefined, async (backend) => await read(backend, query));
  }

  /** Maximum size of a file in bytes. */
  get maxFileBytes(): number {
    return this.#config.max_file_size;
  }

  /** Maximum number of requests of one batch. */
  get maxLines(): number {
    return this.#config.max_lines;
  }

  /** Receives a file. @throws ServiceError payload_too_large, or insufficient_disk */
  async receive(chunks: AsyncIterable<Uint8Array> | Iterable<Uint8Array>): Promise<ReceivedFile> {
    return await this.use(undefined, async ({ store, folder, newId, incoming, maxTotalBytes }) => {
      const limits = { ...this.#config, max_total_size: maxTotalBytes };
      return await receiveFile(chunks, { store, folder, newId, incoming, limits, now: this.now });
    });
  }

  /** @throws ServiceError file_not_found */
  async file(viewer: Viewer, id: string, purposes: readonly FilePurpose[]): Promise<StoredFile> {
    return await this.use(id, async (backend) => await this.#findFile(backend, viewer, id, purposes));
  }

  async files({
    purposes,
    ...query
  }: PageQuery & { readonly purposes: readonly FilePurpose[] }): Promise<Page<StoredFile>> {
    return await this.list(query, async ({ store }, page) => await store.files({ ...page, purposes }));
  }

  /** @throws ServiceError file_not_found */
  async content(viewer: Viewer, id: string, purposes: readonly FilePurpose[]): Promise<FileContent> {
    return await this.use(id, async (backend) => {
      const { bytes } = await this.#findFile(backend, viewer, id, purposes);
      const { folder } = backend;
      // After the response has begun, an error could not be sent any more.
      await folder.check(id, bytes);
      return { size: bytes, etag: id, read: (start, end) => folder.stream(id, start, end) };
    });
  }

  /** @throws ServiceError file_not_found, or batch_conflict if the file is the input of an unfinished batch */
  async deleteFile(viewer: Viewer, id: string, purposes: readonly FilePurpose[]): Promise<void> {
    await this.use(id, async (backend) => {
      await this.#findFile(backend, viewer, id, purposes);
      const user = (await backend.store.unfinished()).find(({ inputFile }) => inputFile === id);
      if (user) {
        throw new ServiceError(
          "batch_conflict",
          `The file is the input of the batch ${user.id}, which is not over; cancel the batch first.`,
        );
      }
      await removeFile(backend, id);
    });
  }

  async create({ viewer, idKind, inputFile, ...fields }: NewBatch): Promise<Batch> {
    const createdAt = this.now();
    const { retention } = this.#config;
    return await this.use(inputFile.id, async ({ store, runner, newId }) => {
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
        usage: NO_USAGE,
      };
      await store.addBatch(batch);
      runner.start(batch);
      this.#events.emit({ type: "batch-created", batch: batch.id });
      return batch;
    });
  }

  /** @throws ServiceError batch_not_found */
  async batch(viewer: Viewer, api: string, id: string): Promise<Batch> {
    return await this.use(id, async (backend) =>
      withWaitingReason(backend, await findBatch(backend, viewer, api, id)),
    );
  }

  async batches({ api, ...query }: PageQuery & { readonly api: string }): Promise<Page<Batch>> {
    return await this.list(query, async (backend, page) => {
      const { items, hasMore } = await backend.store.batches({ ...page, api });
      return {
        items: await Promise.all(items.map(async (each) => await withWaitingReason(backend, each))),
        hasMore,
      };
    });
  }

  /** @throws ServiceError batch_not_found, or batch_conflict if the batch is finished */
  async cancel(viewer: Viewer, api: string, id: string): Promise<Batch> {
    return await this.use(id, async (backend) => {
      const { store, runner } = backend;
      await findBatch(backend, viewer, api, id);
      const change = { status: "cancelling", endsAs: "cancelled" } as const;
      const cancelled = await store.change(id, ["validating", "in_progress"], change);
      if (cancelled) runner.cancelled(id);
      const batch = (await store.batch(undefined, id)) ?? cancelled;
      if (batch && (cancelled || batch.status === "cancelling")) return batch;
      throw new ServiceError(
        "batch_conflict",
        `The batch is ${batch?.status ?? "gone"}; it cannot be cancelled now.`,
      );
    });
  }

  /** Deletes a batch and its results. @throws ServiceError batch_not_found, or batch_conflict if it is unfinished */
  async deleteBatch(viewer: Viewer, api: string, id: string): Promise<void> {
    await this.use(id, async (backend) => {
      const { status, inputFile, outputFile, errorFile } = await findBatch(backend, viewer, api, id);
      if (UNFINISHED_STATUSES.includes(status))
        throw new ServiceError("batch_conflict", `The batch ${id} is not over; cancel it first.`);
      const files = [inputFile, outputFile, errorFile].filter((each) => each !== undefined);
      for (const file of files) await removeFile(backend, file);
      await backend.store.removeBatch(id);
    });
  }

  async #findFile(
    { store }: BatchBackend,
    viewer: Viewer,
    id: string,
    purposes: readonly FilePurpose[],
  ): Promise<StoredFile> {
    const file = await store.file(viewer, id);
    if (file && purposes.includes(file.purpose) && file.expiresAt > this.now()) return file;
    throw new ServiceError(
      "file_not_found",
      `There is no file with the id "${id.slice(0, 100)}", or no longer.`,
    );
  }
}

async function findBatch({ store }: BatchBackend, viewer: Viewer, api: string, id: string): Promise<Batch> {
  const batch = await store.batch(viewer, id);
  if (batch?.api === api) return batch;
  throw new ServiceError(
    "batch_not_found",
    `There is no batch with the id "${id.slice(0, 100)}", or no longer.`,
  );
}

async function withWaitingReason({ runner }: BatchBackend, batch: Batch): Promise<Batch> {
  return batch.status === "in_progress" ? { ...batch, waiting: await runner.waitingReason(batch.id) } : batch;
}

async function removeFile({ store, folder }: BatchBackend, id: string): Promise<void> {
  await store.removeFile(id);
  await folder.remove(id);
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
