import { z } from "zod";
import type { ServiceError } from "../errors/service-error.ts";

/** Schemas of stored files and batches, which all stores share. Times are Unix milliseconds. */

const count = z.number().min(0);
/** Null means never: JSON has no Infinity. */
const timeOrNull = count.nullable().transform((value) => value ?? Number.POSITIVE_INFINITY);

const unfinishedStatusSchema = z.enum(["validating", "in_progress", "finalizing", "cancelling"]);
const finalStatusSchema = z.enum(["completed", "failed", "expired", "cancelled"]);

/** Status of a batch, in the order in which it passes through them. */
const statusSchema = z.enum([...unfinishedStatusSchema.options, ...finalStatusSchema.options]);
export type BatchStatus = z.infer<typeof statusSchema>;
export type FinalStatus = z.infer<typeof finalStatusSchema>;

export const UNFINISHED_STATUSES: readonly BatchStatus[] = unfinishedStatusSchema.options;

/** Problem in the input of a batch, which therefore does not run. */
const problemSchema = z.object({
  code: z.string(),
  message: z.string(),
  /** Field with the problem. */
  param: z.string().nullable(),
  /** Line number from 1; null if the problem concerns the whole file. */
  line: z.number().nullable(),
});
export type InputProblem = Readonly<z.infer<typeof problemSchema>>;

/** Sum of the tokens of all answers. */
const usageSchema = z.object({
  inputTokens: count,
  cachedTokens: count,
  outputTokens: count,
  reasoningTokens: count,
});
export type BatchUsage = Readonly<z.infer<typeof usageSchema>>;

export const NO_USAGE: BatchUsage = { inputTokens: 0, cachedTokens: 0, outputTokens: 0, reasoningTokens: 0 };

const countsSchema = z.object({ succeeded: count, errored: count, cancelled: count, expired: count });
export type LineCounts = Readonly<z.infer<typeof countsSchema>>;

/** How a line of the input ended. */
const lineOutcomeSchema = countsSchema.keyof();
export type LineOutcome = z.infer<typeof lineOutcomeSchema>;

/** How a line ended that was run. */
export type RunOutcome = Extract<LineOutcome, "succeeded" | "errored">;

export const batchSchema = z.object({
  id: z.string(),
  /** Name of the {@link BatchFormat} of the lines and answers. */
  api: z.string(),
  /** Digest of the API key that created it; see {@link Viewer}. */
  owner: z.string(),
  /** Request path of all lines. */
  endpoint: z.string(),
  /** Id of the file with its lines. */
  inputFile: z.string(),
  status: statusSchema,
  /** Time at which each status was reached. */
  times: z.partialRecord(statusSchema, count),
  createdAt: count,
  /** Lines that have no answer at this time expire. */
  expiresAt: count,
  /** Retention of the output files in milliseconds. */
  outputLifeMs: timeOrNull,
  metadata: z.record(z.string(), z.string()).nullable(),
  problems: z.array(problemSchema).readonly(),
  outputFile: z.string().optional(),
  errorFile: z.string().optional(),
  /** Final status, set once the output is written. */
  endsAs: finalStatusSchema.optional(),
  /** Number of lines; 0 while the input is being read. */
  total: count,
  counts: countsSchema,
  usage: usageSchema,
});

export interface Batch extends Readonly<z.output<typeof batchSchema>> {
  /** Why no line runs now, such as "waits: no memory is free"; set only in answers to clients, never stored. */
  readonly waiting?: string | undefined;
}

/**
 * `batch`: uploaded lines; `batch_output`: answers; `requests` and `results`: the same for an API without file routes.
 */
const purposeSchema = z.enum(["batch", "batch_output", "requests", "results"]);
export type FilePurpose = z.infer<typeof purposeSchema>;

/** Description of an uploaded file or of the output of a batch. */
export const storedFileSchema = z.object({
  id: z.string(),
  owner: z.string(),
  purpose: purposeSchema,
  name: z.string(),
  bytes: count,
  createdAt: count,
  expiresAt: timeOrNull,
});
export type StoredFile = Readonly<z.output<typeof storedFileSchema>>;

/** Digest of the client's API key, which sees only what it created; undefined if the client sees everything. */
export type Viewer = string | undefined;

/** Line of the input that has no answer yet. */
export const pendingLineSchema = z.object({
  /** Line number from 1. */
  number: count,
  customId: z.string(),
  model: z.string(),
  /** Sorts lines so that those with a common prompt prefix are neighbors. */
  sortKey: z.string(),
  /** Offset in the file in bytes. */
  start: count,
  length: count,
});
export type PendingLine = Readonly<z.infer<typeof pendingLineSchema>>;

/** HTTP response to a line. */
const routeAnswerSchema = z.object({
  status: z.number(),
  requestId: z.string(),
  /** JSON exactly as the route wrote it. */
  body: z.string(),
});
export type RouteAnswer = Readonly<z.infer<typeof routeAnswerSchema>>;

/** Line with its outcome. */
export const answeredLineSchema = z.object({
  number: count,
  customId: z.string(),
  outcome: lineOutcomeSchema,
  /** Absent if the line was not run. */
  answer: routeAnswerSchema.optional(),
});
export type AnsweredLine = Readonly<z.infer<typeof answeredLineSchema>>;

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
