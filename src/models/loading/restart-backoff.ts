import { ServiceError } from "../../errors/service-error.ts";
import type { Clock } from "./clock.ts";

/** The first restart is immediate; the pause before the second is this long and doubles from then on. */
const FIRST_PAUSE_MS = 1000;
/** A model that keeps failing is tried about once a minute. */
const LONGEST_PAUSE_MS = 60_000;

interface Failures {
  readonly count: number;
  readonly notBefore: number;
  readonly error: ServiceError;
}

/** Remembers which models' engines failed, and holds back those that fail again and again. */
export class RestartBackoff {
  readonly #clock: Clock;
  readonly #failures = new Map<string, Failures>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  failed(alias: string, error: ServiceError): void {
    const count = (this.#failures.get(alias)?.count ?? 0) + 1;
    const pause = count === 1 ? 0 : Math.min(LONGEST_PAUSE_MS, FIRST_PAUSE_MS * 2 ** (count - 2));
    this.#failures.set(alias, { count, notBefore: this.#clock.now() + pause, error });
  }

  /** The engine has done its work, or somebody decided anew. */
  clear(alias: string): void {
    this.#failures.delete(alias);
  }

  /** Throws what went wrong last time, with the time to wait, when it is too early to try again. */
  check(alias: string): void {
    const failures = this.#failures.get(alias);
    const wait = (failures?.notBefore ?? 0) - this.#clock.now();
    if (!failures || wait <= 0) return;
    const seconds = Math.ceil(wait / 1000);
    const { error, count } = failures;
    throw new ServiceError(
      error.code,
      `${error.message} It failed ${count} times and is tried again in ${seconds} s.`,
      { cause: error, retryAfterSecs: seconds },
    );
  }
}
