import type { ServiceError } from "../errors/service-error.ts";

/** Status of a batch, in the order in which it passes through them; the last four are final. */
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

export const UNFINISHED_STATUSES: readonly BatchStatus[] = [
  "validating",
  "in_progress",
  "finalizing",
  "cancelling",
];

/** How a line of the input ended. */
export type LineOutcome = "succeeded" | "errored" | "cancelled" | "expired";

/** Problem in the input of a batch, which therefore does not run. */
export interface InputProblem {
  readonly code: string;
  readonly message: string;
  /** Field with the problem. */
  readonly param: string | null;
  /** Line number from 1; null if the problem concerns the whole file. */
  readonly line: number | null;
}

/** Sum of the tokens of all answers. */
export interface BatchUsage {
  readonly inputTokens: number;
  readonly cachedTokens: number;
  readonly outputTokens: number;
  readonly reasoningTokens: number;
}

/** How a line ended that was run. */
export type RunOutcome = Extract<LineOutcome, "succeeded" | "errored">;

export type LineCounts = Readonly<Record<LineOutcome, number>>;

/** A batch. Times are Unix milliseconds. */
export interface Batch {
  readonly id: string;
  /** Name of the {@link BatchFormat} of the lines and answers. */
  readonly api: string;
  /** Digest of the API key that created it; see {@link Viewer}. */
  readonly owner: string;
  /** Request path of all lines. */
  readonly endpoint: string;
  /** Id of the file with its lines. */
  readonly inputFile: string;
  readonly status: BatchStatus;
  /** Time at which each status was reached. */
  readonly times: Readonly<Partial<Record<BatchStatus, number>>>;
  readonly createdAt: number;
  /** Lines that have no answer at this time expire. */
  readonly expiresAt: number;
  /** Retention of the output files in milliseconds. */
  readonly outputLifeMs: number;
  readonly metadata: Readonly<Record<string, string>> | null;
  readonly problems: readonly InputProblem[];
  readonly outputFile?: string | undefined;
  readonly errorFile?: string | undefined;
  /** Final status, set once the output is written. */
  readonly endsAs?: FinalStatus | undefined;
  /** Number of lines; 0 while the input is being read. */
  readonly total: number;
  readonly counts: LineCounts;
  readonly usage: BatchUsage;
  /** Why no line runs now, such as "waits: no memory is free"; set only in answers to clients, never stored. */
  readonly waiting?: string | undefined;
}

/** Description of an uploaded file or of the output of a batch. */
export interface StoredFile {
  readonly id: string;
  readonly owner: string;
  readonly purpose: FilePurpose;
  readonly name: string;
  readonly bytes: number;
  /** Unix milliseconds; `expiresAt` is Infinity for a file that never expires. */
  readonly createdAt: number;
  readonly expiresAt: number;
}

/**
 * `batch`: uploaded lines; `batch_output`: answers; `requests` and `results`: the same for an API without file routes.
 */
export type FilePurpose = "batch" | "batch_output" | "requests" | "results";

/** Digest of the client's API key, which sees only what it created; undefined if the client sees everything. */
export type Viewer = string | undefined;

/** Line of the input that has no answer yet. */
export interface PendingLine {
  /** Line number from 1. */
  readonly number: number;
  readonly customId: string;
  readonly model: string;
  /** Sorts lines so that those with a common prompt prefix are neighbors. */
  readonly sortKey: string;
  /** Offset in the file in bytes. */
  readonly start: number;
  readonly length: number;
}

/** HTTP response to a line. */
export interface RouteAnswer {
  readonly status: number;
  readonly requestId: string;
  /** JSON exactly as the route wrote it. */
  readonly body: string;
}

/** Line with its outcome. */
export interface AnsweredLine {
  readonly number: number;
  readonly customId: string;
  readonly outcome: LineOutcome;
  /** Absent if the line was not run. */
  readonly answer?: RouteAnswer | undefined;
}

/** Fields of an input line that scheduling needs. */
export interface ParsedLine {
  readonly customId: string;
  /** Empty for the default model. */
  readonly model: string;
  /** Beginning of the prompt, in parts; lines with equal prefixes are run in succession to reuse the prompt cache. */
  readonly prefix: readonly string[];
}

/** HTTP request of a line. */
export interface LineRequest {
  readonly path: string;
  /** JSON. */
  readonly body: string;
}

/** Wire format of batch lines and answers of one API. */
export interface BatchFormat {
  /** Request paths that lines may have. */
  readonly endpoints: readonly string[];
  /**
   * Parses a line.
   * @param value the line's JSON
   */
  parseLine(value: unknown, endpoint: string): ParsedLine | Omit<InputProblem, "line">;
  /** Returns the HTTP request of a line that `parseLine` accepted. */
  request(value: unknown, endpoint: string): LineRequest;
  /** Returns the JSON body of an error, as the route writes it. */
  error(error: ServiceError, requestId: string): string;
  /** Reads the token usage from the body of an answer. */
  usageOf(body: unknown): BatchUsage;
  /** Returns an output line without the line break. */
  formatAnswer(line: AnsweredLine): string;
  /** True if lines that did not succeed go to a separate error file. */
  readonly separatesErrors: boolean;
}

/** Returns the format of a batch. @throws Error if no format has the name of its API */
export function formatOf(
  formats: Readonly<Record<string, BatchFormat>>,
  { api }: Pick<Batch, "api">,
): BatchFormat {
  const format = formats[api];
  if (format) return format;
  throw new Error(`no format is named ${api}`);
}

/** Runs a line on this or another machine; resolves also if the response is an error. */
export type RunLine = (
  request: LineRequest & { readonly requestId: string; readonly owner: string },
  signal: AbortSignal,
) => Promise<LineResponse>;

export interface LineResponse {
  readonly status: number;
  readonly body: string;
  /** True if the same line may succeed later. */
  readonly retryable: boolean;
  /** Delay before the retry in seconds. */
  readonly retryAfterSecs: number;
}

export type IdKind = "file" | "batch" | "msgbatch" | "batch_req";
export type NewId = (kind: IdKind) => string;

/** Returns a random id in a form that clients know: "file-…", "batch_…", "msgbatch_…". */
export function newId(kind: IdKind): string {
  const random = crypto.randomUUID().replaceAll("-", "");
  return `${kind}${kind === "file" ? "-" : "_"}${random}`;
}
