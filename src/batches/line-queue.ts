import type { BatchStore } from "./batch-store.ts";
import type { LineResponse, WaitingLine } from "./batch.ts";

/** Lines read from the store at once. */
const LINES_AT_ONCE = 128;

/** A line on its way, with what it has met there. */
export interface Attempt {
  readonly line: WaitingLine;
  /** How often the route has failed. */
  failures: number;
  /** How often in a row it had no room. */
  refusals: number;
}

/** When the next line may run, and for which model. */
export interface NextLine {
  readonly model: string;
  /** Unix milliseconds; in the past: now. */
  readonly at: number;
}

/** Lines of one batch, for a pool. */
export interface Lines {
  /** Undefined: nothing is left. */
  next(now: number): Promise<NextLine | undefined>;
  /** Takes a line of this model that may run now. */
  take(model: string, now: number): Promise<Attempt | undefined>;
  /** Gives a line back, to be tried again at a time. */
  giveBack(attempt: Attempt, at: number): void;
}

/** The lines of one batch that are still to be run, in their order; those that are to be tried again come in between. */
export class LineQueue implements Lines {
  readonly #store: Pick<BatchStore, "waitingLines">;
  readonly #id: string;
  readonly #returned: { readonly attempt: Attempt; readonly at: number }[] = [];
  #read: WaitingLine[] = [];
  #last: WaitingLine | undefined;
  #isAtEnd = false;

  constructor(store: Pick<BatchStore, "waitingLines">, id: string) {
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

  giveBack(attempt: Attempt, at: number): void {
    this.#returned.push({ attempt, at });
  }

  async #fill(): Promise<void> {
    if (this.#read.length > 0 || this.#isAtEnd) return;
    this.#read = [...(await this.#store.waitingLines(this.#id, this.#last, LINES_AT_ONCE))];
    this.#last = this.#read.at(-1) ?? this.#last;
    this.#isAtEnd = this.#read.length === 0;
  }
}

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
