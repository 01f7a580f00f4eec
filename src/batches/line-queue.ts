import type { LineResponse, PendingLine } from "./batch.ts";
import type { SqliteBatchStore } from "./sqlite/sqlite-batch-store.ts";

/** Lines read from the store at once. */
const PAGE_LINES = 128;

/** Line being run, with its failed tries. */
export interface Attempt {
  readonly line: PendingLine;
  /** Number of responses with an error other than a refusal. */
  failures: number;
  /** Number of consecutive refusals, such as 503. */
  refusals: number;
}

/** Model of the next line, and when it may run. */
export interface NextLine {
  readonly model: string;
  /** Unix milliseconds; a time in the past means now. */
  readonly at: number;
}

/** Queue of the lines of one batch, for the scheduler. */
export interface PendingLines {
  /** Returns undefined if no lines are left. */
  next(now: number): Promise<NextLine | undefined>;
  /** Takes a line of a model that may run now. */
  take(model: string, now: number): Promise<Attempt | undefined>;
  /** Puts a line back, to be run again at a time. */
  putBack(attempt: Attempt, at: number): void;
}

/** Lines of one batch without an answer, in the order of the store, with lines to be retried in between. */
export class LineQueue implements PendingLines {
  readonly #store: Pick<SqliteBatchStore, "pendingLines">;
  readonly #id: string;
  readonly #returned: { readonly attempt: Attempt; readonly at: number }[] = [];
  #read: PendingLine[] = [];
  #last: PendingLine | undefined;
  #isAtEnd = false;

  constructor(store: Pick<SqliteBatchStore, "pendingLines">, id: string) {
    this.#store = store;
    this.#id = id;
  }

  async next(now: number): Promise<NextLine | undefined> {
    const due = this.#returned.find(({ at }) => at <= now);
    if (due) return { model: due.attempt.line.model, at: due.at };
    await this.#fill();
    const [first] = this.#read;
    if (first) return { model: first.model, at: now };
    const soonest = this.#returned.toSorted((one, other) => one.at - other.at)[0];
    return soonest && { model: soonest.attempt.line.model, at: soonest.at };
  }

  async take(model: string, now: number): Promise<Attempt | undefined> {
    const index = this.#returned.findIndex(({ attempt, at }) => at <= now && attempt.line.model === model);
    if (index >= 0) return this.#returned.splice(index, 1)[0]?.attempt;
    await this.#fill();
    const [first] = this.#read;
    if (first?.model !== model) return undefined;
    this.#read.shift();
    return { line: first, failures: 0, refusals: 0 };
  }

  putBack(attempt: Attempt, at: number): void {
    this.#returned.push({ attempt, at });
  }

  async #fill(): Promise<void> {
    if (this.#read.length > 0 || this.#isAtEnd) return;
    this.#read = [...(await this.#store.pendingLines(this.#id, this.#last, PAGE_LINES))];
    this.#last = this.#read.at(-1) ?? this.#last;
    this.#isAtEnd = this.#read.length === 0;
  }
}

/** Number of failures after which an error is final. */
const MAX_FAILURES = 3;
/** Delay after the first failure; each further one is four times as long. */
const FAILURE_DELAY_MS = 1000;
/** Maximum delay between two tries of a refused line. */
const MAX_REFUSAL_DELAY_MS = 30_000;
/** Statuses of requests that the server refused to begin. */
const REFUSED_STATUSES = new Set([429, 503, 529]);
const FIRST_ERROR_STATUS = 400;

/**
 * Returns the delay before a line is run again in milliseconds; undefined if its answer is final. A refused line is
 * retried until its batch expires; a line that fails is run three times.
 */
export function retryDelay(
  { status, retryable, retryAfterSecs }: Pick<LineResponse, "status" | "retryable" | "retryAfterSecs">,
  attempt: Attempt,
): number | undefined {
  if (status < FIRST_ERROR_STATUS || !retryable) return undefined;
  if (REFUSED_STATUSES.has(status)) {
    attempt.refusals += 1;
    return Math.min(1000 * retryAfterSecs * attempt.refusals, MAX_REFUSAL_DELAY_MS);
  }
  attempt.refusals = 0;
  attempt.failures += 1;
  if (attempt.failures >= MAX_FAILURES) return undefined;
  return FAILURE_DELAY_MS * 4 ** (attempt.failures - 1);
}
