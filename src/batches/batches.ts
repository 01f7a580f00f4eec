import type { Page, PageQuery } from "./batch-store.ts";
import type { Batch, FilePurpose, StoredFile, Viewer } from "./batch.ts";

/** The content of a stored file. */
export interface FileContent {
  readonly size: number;
  readonly etag: string;
  /** Its bytes from `start` up to and including `end`. */
  read(start: number, end: number): ReadableStream<Uint8Array>;
}

/** A file that has arrived, and is forgotten unless it is kept. */
export interface ReceivedFile extends AsyncDisposable {
  readonly bytes: number;
  keep(file: {
    readonly viewer: Viewer;
    readonly purpose: FilePurpose;
    readonly name: string;
    /** Milliseconds; absent: as long as the configuration says, which is the most. */
    readonly lifeMs?: number | undefined;
  }): Promise<StoredFile>;
}

export interface NewBatch {
  readonly viewer: Viewer;
  readonly api: string;
  readonly idKind: "batch" | "msgbatch";
  readonly endpoint: string;
  readonly inputFile: StoredFile;
  readonly metadata: Readonly<Record<string, string>> | null;
  /** Milliseconds; absent: as long as the configuration says. */
  readonly outputLifeMs?: number | undefined;
}

/** Files and batches, for the routes. What a viewer may not see does not exist for it. */
export interface Batches {
  /** Longest file in bytes. */
  readonly maxFileBytes: number;
  /** Most requests of one batch. */
  readonly maxLines: number;
  /**
   * Receives a file.
   * @throws ServiceError payload_too_large, or insufficient_disk
   */
  receive(pieces: AsyncIterable<Uint8Array> | Iterable<Uint8Array>): Promise<ReceivedFile>;
  /** @throws ServiceError file_not_found */
  file(viewer: Viewer, id: string, purposes: readonly FilePurpose[]): Promise<StoredFile>;
  files(query: PageQuery & { readonly purposes: readonly FilePurpose[] }): Promise<Page<StoredFile>>;
  /** @throws ServiceError file_not_found */
  content(viewer: Viewer, id: string, purposes: readonly FilePurpose[]): Promise<FileContent>;
  /** @throws ServiceError file_not_found, or batch_conflict for the input of a batch that is not over */
  deleteFile(viewer: Viewer, id: string, purposes: readonly FilePurpose[]): Promise<void>;

  create(batch: NewBatch): Promise<Batch>;
  /** @throws ServiceError batch_not_found */
  batch(viewer: Viewer, api: string, id: string): Promise<Batch>;
  batches(query: PageQuery & { readonly api: string }): Promise<Page<Batch>>;
  /** @throws ServiceError batch_not_found, or batch_conflict when it is over */
  cancel(viewer: Viewer, api: string, id: string): Promise<Batch>;
  /** Forgets a batch and its results. @throws ServiceError batch_not_found, or batch_conflict when it is not over */
  deleteBatch(viewer: Viewer, api: string, id: string): Promise<void>;
}
