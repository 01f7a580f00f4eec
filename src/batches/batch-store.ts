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
  WaitingLine,
} from "./batch.ts";

/** One page of a list, in order of creation. */
export interface PageQuery {
  readonly viewer: Viewer;
  readonly limit: number;
  /** Newest first. */
  readonly descending: boolean;
  /** Id of the last one of the page before. */
  readonly after?: string | undefined;
  /** Id of the first one of the page behind: those right before it. */
  readonly before?: string | undefined;
}

export interface Page<Item> {
  readonly items: readonly Item[];
  readonly hasMore: boolean;
}

/** What changes of a batch. */
export type BatchChange = Partial<
  Pick<Batch, "status" | "problems" | "outputFile" | "errorFile" | "endsAs" | "total">
>;

/** Content of files, each under its id: {@link FileFolder}, or that of many machines. */
export interface FileContents {
  /** Writes a file; resolves with its bytes when it is durable. What has been written of one that fails is removed. */
  write(id: string, pieces: AsyncIterable<Uint8Array> | Iterable<Uint8Array>): Promise<number>;
  /** Makes sure that a file of so many bytes can be read. @throws ServiceError file_not_found when its content is gone */
  check(id: string, bytes: number): Promise<void>;
  read(id: string): AsyncIterable<Uint8Array>;
  /** Its bytes from `start` up to and including `end`. */
  stream(id: string, start: number, end: number): ReadableStream<Uint8Array>;
  /** A part of it as text. */
  text(id: string, start: number, length: number): Promise<string>;
  remove(id: string): Promise<void>;
}

/**
 * Keeps files' descriptions and batches. Each call is atomic and durable when it resolves, so a process may end between any
 * two. Content of files is kept by {@link FileContents}.
 */
export interface BatchRecords {
  addFile(file: StoredFile): Promise<void>;
  file(id: string, viewer: Viewer): Promise<StoredFile | undefined>;
  files(query: PageQuery & { readonly purposes: readonly FilePurpose[] }): Promise<Page<StoredFile>>;
  removeFile(id: string): Promise<void>;
  /** Ids of files whose time is over. */
  expiredFiles(time: number): Promise<readonly string[]>;
  /** Bytes of all files and answers together. */
  storedBytes(): Promise<number>;

  addBatch(batch: Batch): Promise<void>;
  batch(id: string, viewer: Viewer): Promise<Batch | undefined>;
  batches(query: PageQuery & { readonly api: string }): Promise<Page<Batch>>;
  /** Those that are not over, the oldest first. */
  unfinished(): Promise<readonly Batch[]>;
  /** Changes a batch if it has one of these statuses; undefined if not. */
  change(id: string, from: readonly BatchStatus[], change: BatchChange): Promise<Batch | undefined>;
  /** Gives a batch its last status and adds its files; forgets its lines. */
  finish(id: string, change: BatchChange, files: readonly StoredFile[]): Promise<Batch>;
  removeBatch(id: string): Promise<void>;
  /** Ids of batches that were created before a time and are over. */
  endedBefore(time: number): Promise<readonly string[]>;
}

/** The same with lines and answers, for a machine that runs all of them. */
export interface BatchStore extends BatchRecords {
  /** Ids of all files. */
  fileIds(): Promise<readonly string[]>;
  /** Adds lines; returns those whose custom id the batch has already, which are not added. */
  addLines(id: string, lines: readonly WaitingLine[]): Promise<readonly WaitingLine[]>;
  /** Forgets all lines of a batch, which are about to be read again. */
  dropLines(id: string): Promise<void>;
  /** The next lines without an answer, by model and order. */
  waitingLines(id: string, after: WaitingLine | undefined, limit: number): Promise<readonly WaitingLine[]>;
  /** Records the answer to a line; false, and nothing happens, if it has one already. */
  answer(
    id: string,
    number: number,
    outcome: LineOutcome,
    answer: RouteAnswer,
    usage: BatchUsage,
  ): Promise<boolean>;
  /** Gives all lines without an answer this outcome. */
  answerRest(id: string, outcome: LineOutcome): Promise<void>;
  /** Answered lines in the order of the input. */
  answers(id: string, afterNumber: number, limit: number): Promise<readonly AnsweredLine[]>;
  close(): void;
}

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

/** Parts of files and batches, as every store that keeps them reads them back. */

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
