import { z } from "zod";
import type {
  AnsweredLine,
  Batch,
  BatchStatus,
  BatchUsage,
  FilePurpose,
  LineOutcome,
  RouteAnswer,
  StoredFile,
  Viewer,
  PendingLine,
} from "./batch.ts";

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

/** Records with lines and answers, for a machine that runs all lines itself. */
export interface BatchStore extends BatchRecords {
  /** Returns the ids of all files. */
  fileIds(): Promise<readonly string[]>;
  /** Adds lines; skips and returns those whose custom id the batch has already. */
  addLines(id: string, lines: readonly PendingLine[]): Promise<readonly PendingLine[]>;
  /** Deletes all lines of a batch. */
  deleteLines(id: string): Promise<void>;
  /** Returns the next lines without an answer, sorted by model and sort key. */
  pendingLines(id: string, after: PendingLine | undefined, limit: number): Promise<readonly PendingLine[]>;
  /** Saves the answer to a line; returns false and changes nothing if the line has one already. */
  saveAnswer(
    id: string,
    number: number,
    outcome: LineOutcome,
    answer: RouteAnswer,
    usage: BatchUsage,
  ): Promise<boolean>;
  /** Sets the outcome of all lines without an answer. */
  answerRemaining(id: string, outcome: LineOutcome): Promise<void>;
  /** Returns answered lines in the order of the input. */
  answers(id: string, afterNumber: number, limit: number): Promise<readonly AnsweredLine[]>;
  close(): void;
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

/** Files and batches as the routes use them. Items of other viewers are reported as missing. */
export interface Batches {
  /** Maximum size of a file in bytes. */
  readonly maxFileBytes: number;
  /** Maximum number of requests of one batch. */
  readonly maxLines: number;
  /**
   * Receives a file.
   * @throws ServiceError payload_too_large, or insufficient_disk
   */
  receive(chunks: AsyncIterable<Uint8Array> | Iterable<Uint8Array>): Promise<ReceivedFile>;
  /** @throws ServiceError file_not_found */
  file(viewer: Viewer, id: string, purposes: readonly FilePurpose[]): Promise<StoredFile>;
  files(query: PageQuery & { readonly purposes: readonly FilePurpose[] }): Promise<Page<StoredFile>>;
  /** @throws ServiceError file_not_found */
  content(viewer: Viewer, id: string, purposes: readonly FilePurpose[]): Promise<FileContent>;
  /** @throws ServiceError file_not_found, or batch_conflict if the file is the input of an unfinished batch */
  deleteFile(viewer: Viewer, id: string, purposes: readonly FilePurpose[]): Promise<void>;

  create(batch: NewBatch): Promise<Batch>;
  /** @throws ServiceError batch_not_found */
  batch(viewer: Viewer, api: string, id: string): Promise<Batch>;
  batches(query: PageQuery & { readonly api: string }): Promise<Page<Batch>>;
  /** @throws ServiceError batch_not_found, or batch_conflict if the batch is finished */
  cancel(viewer: Viewer, api: string, id: string): Promise<Batch>;
  /** Deletes a batch and its results. @throws ServiceError batch_not_found, or batch_conflict if it is unfinished */
  deleteBatch(viewer: Viewer, api: string, id: string): Promise<void>;
}

/** Schemas of stored files and batches, shared by all stores. */

export const purposeSchema = z.enum(["batch", "batch_output", "requests", "results"]);

export const finalStatusSchema = z.enum(["completed", "failed", "expired", "cancelled"]);

export const statusSchema = z.enum([
  "validating",
  "in_progress",
  "finalizing",
  "cancelling",
  ...finalStatusSchema.options,
]);

export const problemsSchema = z.array(
  z.object({
    code: z.string(),
    message: z.string(),
    param: z.string().nullable(),
    line: z.number().nullable(),
  }),
);
