/**
 * A client that left has its own slot back before; this is for how long those who come after may wait for the engine's.
 * A machine that is busy otherwise can keep a process from running for a second.
 */
const SHORTEST_MS = 2000;

/** Nobody should wait longer for a slot that nobody uses, not even of a model whose steps take minutes. */
const LONGEST_MS = 30_000;

/** Steps of one engine differ: the first ones are compiled while they run, later ones read a longer context. */
const STEPS = 3;

/**
 * For an engine that has not shown yet how long its steps are. They are chosen to take less than half a second on an
 * ordinary machine; this one may be twenty times slower.
 */
const UNKNOWN_MS = 10_000;

/**
 * How long an engine may work on at a call that was cancelled before it counts as deaf. llama.cpp looks for a
 * cancellation between two steps, so a healthy engine can be silent for one step and no longer; and how long that is
 * on this machine, with this model and this context, its silences until now tell. A machine that was asleep meanwhile
 * only makes the engine look slower than it is.
 */
export class CancelDeadline {
  readonly #now: () => number;
  /** When the engine last said something, or began to work; undefined: it has nothing to do. */
  #silentSince: number | undefined;
  #longestSilenceMs: number | undefined;

  /** @param now milliseconds since any origin */
  constructor(now: () => number = () => performance.now()) {
    this.#now = now;
  }

  /** Milliseconds from a cancellation on. */
  get allowedMs(): number {
    const shown = this.#longestSilenceMs;
    if (shown === undefined) return UNKNOWN_MS;
    return Math.min(LONGEST_MS, Math.max(SHORTEST_MS, STEPS * shown));
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
