import { ServiceError } from "../errors/service-error.ts";

/** Retry-After for those that find the line full. */
const RETRY_AFTER_SECS = 5;

interface Waiter {
  wake: () => void;
  isTrying: boolean;
}

interface LineOptions {
  /** It has begun before, and comes before all others, however many these are. */
  readonly isFirst?: boolean;
  /** It may wait however many do. */
  readonly isUnlimited?: boolean;
}

/**
 * Requests for one model that no machine could begin with, in the order of their arrival. Whenever something changes, the
 * first one tries again; if it succeeds, so does the next.
 */
export class WaitingLine {
  readonly #waiting: Waiter[] = [];
  readonly #most: number;
  #users = 0;
  #isWoken = false;

  readonly #onWaiting: (change: 1 | -1) => void;

  /**
   * @param most requests that may wait; the next one is refused
   * @param onWaiting one more or one fewer waits
   */
  constructor(most: number, onWaiting: (change: 1 | -1) => void = () => undefined) {
    this.#most = most;
    this.#onWaiting = onWaiting;
  }

  get length(): number {
    return this.#waiting.length;
  }

  /** Whether somebody waits, or may have to: then nobody may forget this line. */
  get isUsed(): boolean {
    return this.#users > 0;
  }

  /**
   * Tries until it succeeds.
   * @param attempt resolves with undefined when no machine can begin
   * @throws ServiceError overloaded when too many wait, the signal's reason, and what the attempt throws
   */
  async run<Result extends object>(
    attempt: () => Promise<Result | undefined>,
    signal: AbortSignal,
    options: LineOptions = {},
  ): Promise<Result> {
    this.#users += 1;
    try {
      const isNext = this.#waiting.length === 0 || options.isFirst === true;
      return (isNext ? await attempt() : undefined) ?? (await this.#wait(attempt, signal, options));
    } finally {
      this.#users -= 1;
    }
  }

  async #wait<Result extends object>(
    attempt: () => Promise<Result | undefined>,
    signal: AbortSignal,
    { isFirst = false, isUnlimited = false }: LineOptions,
  ): Promise<Result> {
    if (!isFirst && !isUnlimited && this.#waiting.length >= this.#most) {
      throw new ServiceError(
        "overloaded",
        `All machines that have the model are busy, and ${this.#waiting.length} requests are waiting; try again in about ${RETRY_AFTER_SECS} s.`,
        { retryAfterSecs: RETRY_AFTER_SECS },
      );
    }
    const waiter: Waiter = { wake: () => undefined, isTrying: false };
    if (isFirst) this.#waiting.unshift(waiter);
    else this.#waiting.push(waiter);
    this.#onWaiting(1);
    const onAbort = (): void => waiter.wake();
    signal.addEventListener("abort", onAbort);
    try {
      for (;;) {
        signal.throwIfAborted();
        await new Promise<void>((resolve) => {
          waiter.wake = resolve;
        });
        const result = await this.#try(waiter, attempt);
        if (result) return result;
      }
    } finally {
      signal.removeEventListener("abort", onAbort);
      this.#onWaiting(-1);
      this.#waiting.splice(this.#waiting.indexOf(waiter), 1);
      this.wake();
    }
  }

  /** Something has changed: a machine may be free. */
  wake(): void {
    if (this.#isWoken) return;
    this.#isWoken = true;
    // Once for all that changes in a turn of the event loop.
    setImmediate(() => {
      this.#isWoken = false;
      this.#waiting.find(({ isTrying }) => !isTrying)?.wake();
    });
  }

  async #try<Result extends object>(
    waiter: Waiter,
    attempt: () => Promise<Result | undefined>,
  ): Promise<Result | undefined> {
    waiter.isTrying = true;
    let isPending = true;
    // When it has chosen its machine and waits for it, there may be room for the next one.
    setImmediate(() => {
      if (isPending) this.wake();
    });
    try {
      return await attempt();
    } finally {
      isPending = false;
      waiter.isTrying = false;
    }
  }
}
