/** A timer that comes this much later than it should says that this process was held up itself. */
const LATE_MS = 500;

/** Notices pauses of this process: what it has not heard meanwhile may just not have been read. */
export class OwnPauses {
  readonly #everyMs: number;
  #last: number;

  /** @param everyMs between two calls of {@link isAfterPause} */
  constructor(everyMs: number, now: number) {
    this.#everyMs = everyMs;
    this.#last = now;
  }

  /** Whether this process has been held up since the last call, so that nobody's silence counts. */
  isAfterPause(now: number): boolean {
    const late = now - this.#last - this.#everyMs;
    this.#last = now;
    return late > LATE_MS;
  }
}
