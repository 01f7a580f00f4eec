/** Where a batch is, in the order of its life; the last four are final. */
export type BatchStatus =
  | "validating"
  | "in_progress"
  | "finalizing"
  | "cancelling"
  | "completed"
  | "failed"
  | "expired"
  | "cancelled";

export type FinalStatus = Extract<BatchStatus, "completed" | "failed" | "expired" | "cancelled">;

export const UNFINISHED: readonly BatchStatus[] = ["validating", "in_progress", "finalizing", "cancelling"];

/** What became of a line. */
export type LineOutcome = "succeeded" | "errored" | "cancelled" | "expired";

/** Something wrong with the input of a batch, which therefore does not run. */
export interface InputProblem {
  readonly code: string;
  readonly message: string;
  /** Field at fault. */
  readonly param: string | null;
  /** From 1; null where it is the whole file. */
  readonly line: number | null;
}

/** Tokens that all answers together took. */
export interface BatchUsage {
  readonly inputTokens: number;
  readonly cachedTokens: number;
  readonly outputTokens: number;
  readonly reasoningTokens: number;
}

/** What became of a line that was run. */
export type RunOutcome = Extract<LineOutcome, "succeeded" | "errored">;

export type LineCounts = Readonly<Record<LineOutcome, number>>;

/** A batch. Times are Unix milliseconds. */
export interface Batch {
  readonly id: string;
  /** Name of the {@link BatchFormat} that reads its lines and writes its answers. */
  readonly api: string;
  /** Who made it; see {@link Viewer}. */
  readonly owner: string;
  /** Path that all its lines are for. */
  readonly endpoint: string;
  /** Id of the file with its lines. */
  readonly inputFile: string;
  readonly status: BatchStatus;
  /** Of each status that it has reached, when. */
  readonly times: Readonly<Partial<Record<BatchStatus, number>>>;
  readonly createdAt: number;
  /** What is not done by then is not done. */
  readonly expiresAt: number;
  /** How long its output files are kept, in milliseconds. */
  readonly outputLifeMs: number;
  readonly metadata: Readonly<Record<string, string>> | null;
  readonly problems: readonly InputProblem[];
  readonly outputFile?: string | undefined;
  readonly errorFile?: string | undefined;
  /** What it becomes once its output is written. */
  readonly endsAs?: FinalStatus | undefined;
  /** Lines in all; 0 while they are being read. */
  readonly total: number;
  readonly counts: LineCounts;
  readonly usage: BatchUsage;
  /** Why none of its lines are run now, behind its name in a sentence; known where one batch is asked for. */
  readonly waiting?: string | undefined;
}

/** A file that was uploaded, or the output of a batch. */
export interface StoredFile {
  readonly id: string;
  readonly owner: string;
  readonly purpose: FilePurpose;
  readonly name: string;
  readonly bytes: number;
  /** Unix milliseconds; Infinity: never. */
  readonly createdAt: number;
  readonly expiresAt: number;
}

/** `batch`: uploaded lines; `batch_output`: answers; `requests` and `results`: the same of a batch without files of its own. */
export type FilePurpose = "batch" | "batch_output" | "requests" | "results";

/** Digest of the API key that asks, which sees what it has made itself; undefined for those who see everything. */
export type Viewer = string | undefined;

/** A line of the input that has no answer yet. */
export interface WaitingLine {
  /** From 1. */
  readonly number: number;
  readonly customId: string;
  readonly model: string;
  /** Lines with common beginnings are next to each other in this order. */
  readonly order: string;
  /** Where it is in the file, in bytes. */
  readonly start: number;
  readonly length: number;
}

/** What the route said to a line. */
export interface RouteAnswer {
  readonly status: number;
  readonly requestId: string;
  /** JSON, as the route wrote it. */
  readonly body: string;
}

/** A line that is done. */
export interface AnsweredLine {
  readonly number: number;
  readonly customId: string;
  readonly outcome: LineOutcome;
  /** Absent for a line that was not run. */
  readonly answer?: RouteAnswer | undefined;
}
