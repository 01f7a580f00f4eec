import { ServiceError } from "../errors/service-error.ts";

/** Retry-After when the queue is full. */
const RETRY_AFTER_SECS = 5;

interface Waiter {
  wake: () => void;
  isTrying: boolean;
}

interface QueueOptions {
  /** True for an answer that has already begun: it precedes all others, without a limit. */
  readonly isFirst?: boolean;
  /** True if the request may wait however many others do. */
  readonly isUnlimited?: boolean;
}

/**
 * Requests for one model that wait for a machine, in order of arrival. On each change the first one tries again; if it
 * succeeds, so does the next.
 */
export class RequestQueue {
  readonly #waiting: Waiter[] = [];
  readonly #maxWaiting: number;
  #users = 0;
  #isWakeScheduled = false;

  readonly #onWaiting: (change: 1 | -1) => void;

  /**
   * @param maxWaiting maximum waiting requests; further ones are refused
   * @param onWaiting called with the change in the number of waiting requests
   */
  constructor(maxWaiting: number, onWaiting: (change: 1 | -1) => void = () => undefined) {
    this.#maxWaiting = maxWaiting;
    this.#onWaiting = onWaiting;
  }

  get length(): number {
    return this.#waiting.length;
  }

  /** True if a request waits or may have to: the queue must not be dropped then. */
  get isUsed(): boolean {
    return this.#users > 0;
  }

  /**
   * Tries until an attempt succeeds.
   * @param attempt resolves with undefined if no machine can begin
   * @throws ServiceError overloaded if too many requests wait, the signal's reason, and errors of the attempt
   */
  async run<Result extends object>(
    attempt: () => Promise<Result | undefined>,
    signal: AbortSignal,
    options: QueueOptions = {},
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
    { isFirst = false, isUnlimited = false }: QueueOptions,
  ): Promise<Result> {
    if (!isFirst && !isUnlimited && this.#waiting.length >= this.#maxWaiting) {
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

  /** Tries the first request again, because a machine may be free. */
  wake(): void {
    if (this.#isWakeScheduled) return;
    this.#isWakeScheduled = true;
    // Once for all changes of a tick.
    setImmediate(() => {
      this.#isWakeScheduled = false;
      this.#waiting.find(({ isTrying }) => !isTrying)?.wake();
    });
  }

  async #try<Result extends object>(
    waiter: Waiter,
    attempt: () => Promise<Result | undefined>,
  ): Promise<Result | undefined> {
    waiter.isTrying = true;
    let isPending = true;
    // While this attempt waits for its machine, there may be a machine for the next request.
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
