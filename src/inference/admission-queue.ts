import { ServiceError } from "../errors/service-error.ts";

/** Retry-After when no request has ended yet: a short answer of a small model on a laptop. */
const DEFAULT_HOLD_SECS = 5;
/** Weight of the newest duration in the running mean: the last ten or so requests count. */
const MEAN_WEIGHT = 0.2;
/** A client told to wait longer would rather ask elsewhere, and the estimate means nothing any more. */
const MAX_RETRY_AFTER_SECS = 120;

/** The right to have one call in flight on an engine. Disposing it twice frees it once. */
export interface Permit extends Disposable {
  readonly queue: AdmissionQueue;
  /** Corrects what was asked for, once it is known better; others may then be let in. */
  resize(tokens: number): void;
}

interface Waiter {
  readonly tokens: number;
  grant(): void;
  refuse(error: ServiceError): void;
}

export interface AdmissionRequest {
  /** Tokens of context that the call may come to need; as many as there are at most. Default: none. */
  tokens?: number;
  /** The caller belongs to a request that was let in before, such as a further text of a batch. Default: false. */
  bypassQueueLimit?: boolean;
}

export interface AdmissionQueueOptions {
  /** Calls in flight at once. */
  slots: number;
  /** Tokens of context that all calls have together; absent: any number. */
  contextTokens?: number;
  /** Callers that may wait; the next one is refused. */
  maxWaiting: number;
  /** Milliseconds since any origin. */
  now?: () => number;
}

/**
 * First come, first served admission to one engine. Invariants: at most `slots` permits are out, and what they may need
 * fits into the context together; no caller waits that could be admitted, except after others; a permit is freed
 * exactly once.
 */
export class AdmissionQueue {
  readonly #slots: number;
  readonly #contextTokens: number;
  readonly #maxWaiting: number;
  readonly #now: () => number;
  /** A Set keeps the order of arrival and removes in constant time. */
  readonly #waiting = new Set<Waiter>();
  #running = 0;
  #tokens = 0;
  #meanHoldSecs = DEFAULT_HOLD_SECS;
  #closedWith: (() => ServiceError) | undefined;

  constructor({
    slots,
    contextTokens = Number.POSITIVE_INFINITY,
    maxWaiting,
    now = () => performance.now(),
  }: AdmissionQueueOptions) {
    this.#slots = slots;
    this.#contextTokens = contextTokens;
    this.#maxWaiting = maxWaiting;
    this.#now = now;
  }

  get slots(): number {
    return this.#slots;
  }

  /** Permits that are out. */
  get running(): number {
    return this.#running;
  }

  get waiting(): number {
    return this.#waiting.size;
  }

  /** Seconds until a new caller may expect a permit, from the mean time that permits were held. */
  get retryAfterSecs(): number {
    const estimate = Math.ceil(((this.#waiting.size + 1) * this.#meanHoldSecs) / this.#slots);
    return Math.min(Math.max(estimate, 1), MAX_RETRY_AFTER_SECS);
  }

  /**
   * Resolves with a permit when it is this caller's turn. Rejects with `overloaded` when too many wait, with the
   * signal's reason when it aborts first, and with the closing error when the engine is gone.
   */
  async acquire(
    signal: AbortSignal,
    { tokens: wished = 0, bypassQueueLimit = false }: AdmissionRequest = {},
  ): Promise<Permit> {
    signal.throwIfAborted();
    if (this.#closedWith) throw this.#closedWith();
    const tokens = Math.min(wished, this.#contextTokens);
    if (this.#waiting.size === 0 && this.#hasRoom(tokens)) return this.#take(tokens);
    if (!bypassQueueLimit && this.#waiting.size >= this.#maxWaiting) {
      const retryAfterSecs = this.retryAfterSecs;
      throw new ServiceError(
        "overloaded",
        `All slots or the whole context of the model are in use, and ${this.#waiting.size} requests are waiting; ` +
          `try again in about ${retryAfterSecs} s.`,
        { retryAfterSecs },
      );
    }
    return new Promise<Permit>((resolve, reject) => {
      const leave = () => {
        this.#waiting.delete(waiter);
        signal.removeEventListener("abort", onAbort);
      };
      const onAbort = () => {
        leave();
        reject(signal.reason);
        // Later callers may fit where this one did not.
        this.#grant();
      };
      const waiter: Waiter = {
        tokens,
        grant: () => {
          leave();
          resolve(this.#take(tokens));
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

  /** Refuses all waiting and later callers. Permits that are out are freed by their holders. */
  close(makeError: () => ServiceError): void {
    this.#closedWith ??= makeError;
    for (const waiter of this.#waiting) waiter.refuse(this.#closedWith());
  }

  #hasRoom(tokens: number): boolean {
    return this.#running < this.#slots && this.#tokens + tokens <= this.#contextTokens;
  }

  /** Admits waiting callers in order: one that does not fit holds up those after it, or it might never get its turn. */
  #grant(): void {
    if (this.#closedWith) return;
    for (const waiter of this.#waiting) {
      if (!this.#hasRoom(waiter.tokens)) return;
      waiter.grant();
    }
  }

  #take(wished: number): Permit {
    let tokens = wished;
    this.#running += 1;
    this.#tokens += tokens;
    const takenAt = this.#now();
    let free = false;
    const resize = (better: number): void => {
      if (free) return;
      this.#tokens += better - tokens;
      tokens = better;
      this.#grant();
    };
    return {
      queue: this,
      resize: (better) => resize(Math.min(better, this.#contextTokens)),
      [Symbol.dispose]: () => {
        if (free) return;
        const heldSecs = (this.#now() - takenAt) / 1000;
        this.#meanHoldSecs += MEAN_WEIGHT * (heldSecs - this.#meanHoldSecs);
        this.#running -= 1;
        resize(0);
        free = true;
      },
    };
  }
}
