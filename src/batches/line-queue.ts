import type { BatchStore } from "./batch-store.ts";
import type { WaitingLine } from "./batch.ts";

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
