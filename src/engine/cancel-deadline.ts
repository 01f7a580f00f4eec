/**
 * Allows for a busy machine on which the process does not run for a while: ending it costs a load of the model, and the
 * answers to all its other requests.
 */
const MIN_MS = 5000;

/** Nobody should wait longer for a slot, even when the model's steps take minutes. */
const MAX_MS = 30_000;

/** Steps differ in length: the first ones include compilation, later ones have a longer context. */
const STEPS = 3;

/** For an engine whose step time is not known yet; the machine may be slow. */
const UNKNOWN_MS = 10_000;

/**
 * How long an engine may keep working on a cancelled call before it counts as unresponsive. llama.cpp checks for
 * cancellation between steps, so a healthy engine is silent for one step at most; its longest silence so far tells how
 * long that takes. A machine that was suspended only makes the engine look slower than it is.
 */
export class CancelDeadline {
  readonly #now: () => number;
  /** When the engine last sent a message or began to work; undefined while it is idle. */
  #silentSince: number | undefined;
  #longestSilenceMs: number | undefined;

  /** @param now milliseconds since any origin */
  constructor(now: () => number = () => performance.now()) {
    this.#now = now;
  }

  /** Milliseconds allowed after a cancellation. */
  get allowedMs(): number {
    const shown = this.#longestSilenceMs;
    if (shown === undefined) return UNKNOWN_MS;
    return Math.min(MAX_MS, Math.max(MIN_MS, STEPS * shown));
  }

  workBegins(): void {
    this.#silentSince ??= this.#now();
  }

  heard(): void {
    if (this.#silentSince === undefined) return;
    const now = this.#now();
    this.#longestSilenceMs = Math.max(this.#longestSilenceMs ?? 0, now - this.#silentSince);
    this.#silentSince = now;
  }

  workEnds(): void {
    this.#silentSince = undefined;
  }
}
