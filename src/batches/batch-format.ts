import type { ServiceError } from "../errors/service-error.ts";
import type { AnsweredLine, Batch, BatchUsage, InputProblem } from "./batch.ts";

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
