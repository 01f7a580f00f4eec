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
