import type { ServiceError } from "../errors/service-error.ts";

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

/** A line of the input, as far as the room has to know it. */
export interface ReadLine {
  readonly customId: string;
  /** Empty: the default model. */
  readonly model: string;
  /** What the model reads first, piece by piece; lines that begin alike are run one after the other. */
  readonly beginning: readonly string[];
}

/** What is sent to the route for a line. */
export interface LineRequest {
  readonly path: string;
  /** JSON. */
  readonly body: string;
}

/** How one API writes batches down: the room knows nothing of wire formats. */
export interface BatchFormat {
  /** Paths that its lines may be for. */
  readonly endpoints: readonly string[];
  /**
   * Reads a line.
   * @param value the line's JSON
   */
  read(value: unknown, endpoint: string): ReadLine | Omit<InputProblem, "line">;
  /** The request of a line that has been read before. */
  request(value: unknown, endpoint: string): LineRequest;
  /** JSON of an error, as the route writes it. */
  error(error: ServiceError, requestId: string): string;
  /** Tokens that an answer says it took. */
  usage(body: unknown): BatchUsage;
  /** Writes down an answered line, without the line break. */
  write(line: AnsweredLine): string;
  /** Whether lines that did not succeed have a file of their own. */
  readonly separatesErrors: boolean;
}

/** The format that a batch is written in. */
export function formatOf(
  formats: Readonly<Record<string, BatchFormat>>,
  { api }: Pick<Batch, "api">,
): BatchFormat {
  const format = formats[api];
  if (format) return format;
  throw new Error(`no format is named ${api}`);
}

/** Runs a line, here or elsewhere: resolves with what the route answers, whatever that is. */
export type RunLine = (
  request: LineRequest & { readonly requestId: string; readonly owner: string },
  signal: AbortSignal,
) => Promise<LineResponse>;

export interface LineResponse {
  readonly status: number;
  readonly body: string;
  /** Whether the same line may succeed later. */
  readonly retryable: boolean;
  /** After so many seconds. */
  readonly retryAfterSecs: number;
}

export type IdKind = "file" | "batch" | "msgbatch" | "batch_req";
export type NewId = (kind: IdKind) => string;

/** An id of the forms that clients know: "file-…", "batch_…", "msgbatch_…". */
export function newId(kind: IdKind): string {
  const random = crypto.randomUUID().replaceAll("-", "");
  return `${kind}${kind === "file" ? "-" : "_"}${random}`;
}
