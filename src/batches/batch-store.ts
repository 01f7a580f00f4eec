import type { Batch, BatchStatus, FilePurpose, StoredFile, Viewer } from "./batch.ts";

/** Query for one page of a list in order of creation. */
export interface PageQuery {
  readonly viewer: Viewer;
  readonly limit: number;
  /** Newest first. */
  readonly descending: boolean;
  /** Id of the last item of the previous page. */
  readonly after?: string | undefined;
  /** Id of the first item of the next page; the result is the page right before it. */
  readonly before?: string | undefined;
}

export interface Page<Item> {
  readonly items: readonly Item[];
  readonly hasMore: boolean;
}

/** Fields of a batch that may change. */
export type BatchChange = Partial<
  Pick<Batch, "status" | "problems" | "outputFile" | "errorFile" | "endsAs" | "total">
>;

/** Content of files by id: on this machine's disk ({@link FileFolder}), or in JetStream. */
export interface FileContents {
  /** Writes a file; resolves with its size in bytes when it is durable. Removes the written part on failure. */
  write(id: string, chunks: AsyncIterable<Uint8Array> | Iterable<Uint8Array>): Promise<number>;
  /** Checks that a file of this size can be read. @throws ServiceError file_not_found if its content is missing */
  check(id: string, bytes: number): Promise<void>;
  read(id: string): AsyncIterable<Uint8Array>;
  /** Streams the bytes from `start` up to and including `end`. */
  stream(id: string, start: number, end: number): ReadableStream<Uint8Array>;
  /** Reads a part of a file as text; `start` and `length` are in bytes. */
  text(id: string, start: number, length: number): Promise<string>;
  remove(id: string): Promise<void>;
}

/**
 * Stores descriptions of files, and batches. Each call is atomic and durable when it resolves, so the process may end
 * between any two calls. {@link FileContents} stores the content of files.
 */
export interface BatchRecords {
  addFile(file: StoredFile): Promise<void>;
  file(viewer: Viewer, id: string): Promise<StoredFile | undefined>;
  files(query: PageQuery & { readonly purposes: readonly FilePurpose[] }): Promise<Page<StoredFile>>;
  removeFile(id: string): Promise<void>;
  /** Returns the ids of files that expired at or before a time. */
  expiredFiles(time: number): Promise<readonly string[]>;
  /** Returns the bytes of all files and answers. */
  storedBytes(): Promise<number>;

  addBatch(batch: Batch): Promise<void>;
  batch(viewer: Viewer, id: string): Promise<Batch | undefined>;
  batches(query: PageQuery & { readonly api: string }): Promise<Page<Batch>>;
  /** Returns the unfinished batches, oldest first. */
  unfinished(): Promise<readonly Batch[]>;
  /** Changes a batch if it has one of the statuses `from`; returns undefined if not. */
  change(id: string, from: readonly BatchStatus[], change: BatchChange): Promise<Batch | undefined>;
  /** Sets the final status of a batch, adds its output files and deletes its lines. */
  finish(id: string, change: BatchChange, files: readonly StoredFile[]): Promise<Batch>;
  removeBatch(id: string): Promise<void>;
  /** Returns the ids of finished batches that were created before a time. */
  endedBefore(time: number): Promise<readonly string[]>;
}

/** The content of a stored file. */
export interface FileContent {
  readonly size: number;
  readonly etag: string;
  /** Streams the bytes from `start` up to and including `end`. */
  read(start: number, end: number): ReadableStream<Uint8Array>;
}

/** Received file; disposing deletes it unless it was stored. */
export interface ReceivedFile extends AsyncDisposable {
  readonly bytes: number;
  store(file: {
    readonly viewer: Viewer;
    readonly purpose: FilePurpose;
    readonly name: string;
    /** Lifetime in milliseconds, at most `batches.retention`, which is the default. */
    readonly lifetimeMs?: number | undefined;
  }): Promise<StoredFile>;
}

export interface NewBatch {
  readonly viewer: Viewer;
  readonly api: string;
  readonly idKind: "batch" | "msgbatch";
  readonly endpoint: string;
  readonly inputFile: StoredFile;
  readonly metadata: Readonly<Record<string, string>> | null;
  /** Milliseconds; `batches.retention` if absent. */
  readonly outputLifeMs?: number | undefined;
}
