import type { LineResponse } from "./batch-format.ts";
import type { Attempt } from "./line-queue.ts";

/** A line that has failed so often is not tried again. */
const MAX_FAILURES = 3;
/** The first wait after a failure; each further one is four times as long. */
const FAILURE_WAIT_MS = 1000;
/** No longer between two tries of a line that finds no room. */
const MAX_REFUSAL_WAIT_MS = 30_000;
/** Statuses that say that nothing has been tried yet. */
const REFUSED = new Set([429, 503, 529]);
const FIRST_ERROR = 400;

/**
 * How long to wait before a line is tried again, in milliseconds; undefined: its answer is final. A line that finds no room
 * waits as long as its batch lives; one that fails is tried three times.
 */
export function retryWait(
  { status, retryable, retryAfterSecs }: Pick<LineResponse, "status" | "retryable" | "retryAfterSecs">,
  attempt: Attempt,
): number | undefined {
  if (status < FIRST_ERROR || !retryable) return undefined;
  if (REFUSED.has(status)) {
    attempt.refusals += 1;
    return Math.min(1000 * retryAfterSecs * attempt.refusals, MAX_REFUSAL_WAIT_MS);
  }
  attempt.refusals = 0;
  attempt.failures += 1;
  if (attempt.failures >= MAX_FAILURES) return undefined;
  return FAILURE_WAIT_MS * 4 ** (attempt.failures - 1);
}
