import { ServiceError } from "../errors/service-error.ts";

/** Retry-After when no request has ended yet: a short answer of a small model on a laptop. */
const DEFAULT_HOLD_SECS = 5;
/** Weight of the newest duration in the running mean: the last ten or so requests count. */
const MEAN_WEIGHT = 0.2;
/** A client told to wait longer would rather ask elsewhere, and the estimate means nothing any more. */
const MAX_RETRY_AFTER_SECS = 120;

/** The right to have one call in flight on an engine. Disposing it twice frees it once. */
export interface Slot extends Disposable {
  readonly queue: AdmissionQueue;
}

interface Waiter {
  grant(): void;
  refuse(error: ServiceError): void;
}

export interface AdmissionQueueOptions {
  /** Calls in flight at once. */
  slots: number;
  /** Callers that may wait; the next one is refused. */
  maxWaiting: number;
  /** Milliseconds since any origin. */
  now?: () => number;
}

/**
 * First come, first served admission to one engine. Invariants: at most `slots` slots are out; nobody waits
 * while one is free; a slot is freed exactly once, whoever ends first.
 */
export class AdmissionQueue {
  readonly #slots: number;
  readonly #maxWaiting: number;
  readonly #now: () => number;
  /** A Set keeps the order of arrival and removes in constant time. */
  readonly #waiting = new Set<Waiter>();
  #running = 0;
  #meanHoldSecs = DEFAULT_HOLD_SECS;
  #closedWith: (() => ServiceError) | undefined;

  constructor({ slots, maxWaiting, now = () => performance.now() }: AdmissionQueueOptions) {
    this.#slots = slots;
    this.#maxWaiting = maxWaiting;
    this.#now = now;
  }

  get slots(): number {
    return this.#slots;
  }

  /** Slots that are out. */
  get running(): number {
    return this.#running;
  }

  get waiting(): number {
    return this.#waiting.size;
  }

  /** Seconds until a new caller may expect a slot, from the mean time that slots were held. */
  get retryAfterSecs(): number {
    const estimate = Math.ceil(((this.#waiting.size + 1) * this.#meanHoldSecs) / this.#slots);
    return Math.min(Math.max(estimate, 1), MAX_RETRY_AFTER_SECS);
  }

  /**
   * Resolves with a slot when it is this caller's turn. Rejects with `overloaded` when too many wait, with the
   * signal's reason when it aborts first, and with the closing error when the engine is gone.
   * @param admitted the caller belongs to a request that was let in before (a further text of a batch), so the
   * bound on waiting callers does not apply.
   */
  async acquire(signal: AbortSignal, { admitted = false }: { admitted?: boolean } = {}): Promise<Slot> {
    signal.throwIfAborted();
    if (this.#closedWith) throw this.#closedWith();
    if (this.#running < this.#slots) return this.#take();
    if (!admitted && this.#waiting.size >= this.#maxWaiting) {
      const retryAfterSecs = this.retryAfterSecs;
      throw new ServiceError(
        "overloaded",
        `All ${this.#slots} slots of the model are busy and ${this.#waiting.size} requests wait already; ` +
          `try again in about ${retryAfterSecs} s.`,
        { retryAfterSecs },
      );
    }
    return new Promise<Slot>((resolve, reject) => {
      const leave = () => {
        this.#waiting.delete(waiter);
        signal.removeEventListener("abort", onAbort);
      };
      const onAbort = () => {
        leave();
        reject(signal.reason);
      };
      const waiter: Waiter = {
        grant: () => {
          leave();
          resolve(this.#take());
        },
        refuse: (error) => {
          leave();
          reject(error);
        },
      };
      this.#waiting.add(waiter);
      signal.addEventListener("abort", onAbort, { once: true });
    });
  }

  /** Refuses everyone who waits and everyone who comes later. Slots that are out are freed by their holders. */
  close(makeError: () => ServiceError): void {
    this.#closedWith ??= makeError;
    for (const waiter of this.#waiting) waiter.refuse(this.#closedWith());
  }

  #take(): Slot {
    this.#running += 1;
    const takenAt = this.#now();
    let free = false;
    return {
      queue: this,
      [Symbol.dispose]: () => {
        if (free) return;
        free = true;
        this.#running -= 1;
        const heldSecs = (this.#now() - takenAt) / 1000;
        this.#meanHoldSecs += MEAN_WEIGHT * (heldSecs - this.#meanHoldSecs);
        if (this.#closedWith) return;
        const [next] = this.#waiting;
        next?.grant();
      },
    };
  }
}
