import { SchemaTooComplexError } from "./schema-errors.ts";

/** Steps of about 0.1 µs to 1 µs each: what one request may cost, about 100 ms on a slow machine. */
export const DEFAULT_WORK = 150_000;

/**
 * The work that one request may cause. Counting steps instead of time makes the same schema succeed or fail on every
 * machine alike.
 */
export class WorkBudget {
  #left: number;

  constructor(steps: number = DEFAULT_WORK) {
    this.#left = steps;
  }

  /** Steps that are left. */
  get left(): number {
    return this.#left;
  }

  /** @throws SchemaTooComplexError when more was spent than the budget has */
  spend(steps = 1): void {
    this.#left -= steps;
    if (this.#left < 0) throw new SchemaTooComplexError("following it would take too long");
  }
}
