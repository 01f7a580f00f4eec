/**
 * Waits for a promise, or for a signal if it aborts first. The promise's work continues.
 * @throws the promise's rejection, or the signal's reason
 */
export async function abortable<Value>(promise: PromiseLike<Value>, signal: AbortSignal): Promise<Value> {
  if (signal.aborted) {
    // The promise has no other handler, and its rejection must not be unhandled.
    promise.then(undefined, () => undefined);
    throw signal.reason;
  }
  const aborted = Promise.withResolvers<never>();
  const onAbort = (): void => aborted.reject(signal.reason);
  signal.addEventListener("abort", onAbort, { once: true });
  try {
    return await Promise.race([promise, aborted.promise]);
  } finally {
    signal.removeEventListener("abort", onAbort);
  }
}

/** Waits for a time; rejects with the signal's reason when it aborts. */
export async function pause(millis: number, signal?: AbortSignal): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>();
  const timer = setTimeout(resolve, millis);
  try {
    await (signal ? abortable(promise, signal) : promise);
  } finally {
    clearTimeout(timer);
  }
}

/** Maps items in order, a group of them in parallel. */
export async function mapInGroups<Item, Result>(
  items: readonly Item[],
  groupSize: number,
  map: (item: Item) => Promise<Result>,
): Promise<Result[]> {
  const results: Result[] = [];
  for (let at = 0; at < items.length; at += groupSize)
    results.push(...(await Promise.all(items.slice(at, at + groupSize).map(map))));
  return results;
}

/** Lock for one holder at a time, in the order of the calls. */
export class Mutex {
  #last: Promise<void> = Promise.resolve();

  /**
   * Resolves with the lock when all earlier holders have released it. Disposing it twice releases it once.
   * @throws the signal's reason if it aborts first
   */
  async lock(signal: AbortSignal): Promise<Disposable> {
    const released = Promise.withResolvers<void>();
    const before = this.#last;
    this.#last = before.then(() => released.promise);
    try {
      await abortable(before, signal);
    } catch (error) {
      released.resolve();
      throw error;
    }
    return { [Symbol.dispose]: released.resolve };
  }
}

/**
 * Task with several waiting callers. Aborted when all callers have aborted; a caller without a signal never does.
 */
export class SharedTask<T> {
  readonly #controller = new AbortController();
  readonly #result: Promise<T>;
  #waiting = 0;

  constructor(run: (signal: AbortSignal) => Promise<T>) {
    this.#result = run(this.#controller.signal);
    // Callers may all have aborted when the task fails; waiting ones still get the rejection.
    this.#result.catch(() => undefined);
  }

  /** Settles when the task has ended, in any way; never rejects. */
  get settled(): Promise<unknown> {
    return this.#result.catch(() => undefined);
  }

  /** True if the task has been aborted. */
  get aborted(): boolean {
    return this.#controller.signal.aborted;
  }

  /** Waits for the result; rejects with the signal's reason if it aborts first. */
  async join(signal?: AbortSignal): Promise<T> {
    this.#waiting += 1;
    if (!signal) return await this.#result;
    // Synchronously, so that the next caller sees that this task has ended.
    const leave = (): void => {
      this.#waiting -= 1;
      if (this.#waiting === 0) this.abort(signal.reason);
    };
    if (signal.aborted) leave();
    else signal.addEventListener("abort", leave, { once: true });
    try {
      return await abortable(this.#result, signal);
    } finally {
      signal.removeEventListener("abort", leave);
    }
  }

  /** Aborts the task for all callers. */
  abort(reason: unknown): void {
    this.#controller.abort(reason);
  }
}
