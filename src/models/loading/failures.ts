import { ServiceError } from "../../errors/service-error.ts";
import type { Clock } from "./clock.ts";
import type { LoadPlan } from "./load-planner.ts";

/** The first restart is immediate; the second waits this long, and the wait doubles from then on. */
const FIRST_PAUSE_MS = 1000;
/** A model that keeps failing is retried about once a minute. */
const LONGEST_PAUSE_MS = 60_000;

/** An engine that ended unexpectedly: how its model was loaded, and why it ended. */
export interface Crash {
  readonly plan: LoadPlan;
  readonly reason: string;
}

/** Remembers failed models, restores the settings of crashed ones, and delays retries of those that keep failing. */
export class Failures {
  readonly #clock: Clock;
  readonly #failures = new Map<string, { count: number; notBefore: number; error: ServiceError }>();
  readonly #crashes = new Map<string, Crash>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** @param crash if the model was already loaded: the next request loads it again */
  add(alias: string, error: ServiceError, crash?: Crash): void {
    if (crash) this.#crashes.set(alias, crash);
    const count = (this.#failures.get(alias)?.count ?? 0) + 1;
    const pause = count === 1 ? 0 : Math.min(LONGEST_PAUSE_MS, FIRST_PAUSE_MS * 2 ** (count - 2));
    this.#failures.set(alias, { count, notBefore: this.#clock.now() + pause, error });
  }

  /** The crash of a model, if it has not been loaded again since. */
  crash(alias: string): Crash | undefined {
    return this.#crashes.get(alias);
  }

  /** The model has been loaded again. */
  recovered(alias: string): void {
    this.#crashes.delete(alias);
  }

  /** The engine has worked, or was loaded explicitly: the next failure counts as the first. */
  forgive(alias: string): void {
    this.#failures.delete(alias);
  }

  /** The model is no longer wanted. */
  forget(alias: string): void {
    this.forgive(alias);
    this.recovered(alias);
  }

  /** Throws the last error with the time to wait, if it is too early to retry. */
  check(alias: string): void {
    const failures = this.#failures.get(alias);
    const wait = (failures?.notBefore ?? 0) - this.#clock.now();
    if (!failures || wait <= 0) return;
    const seconds = Math.ceil(wait / 1000);
    const { error, count } = failures;
    throw new ServiceError(
      error.code,
      `${error.message} It failed ${count} times and will be retried in ${seconds} s.`,
      { cause: error, retryAfterSecs: seconds },
    );
  }
}
