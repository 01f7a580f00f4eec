/** Values on their way from a callback to one `for await` loop, with an end or an error after the last. */
export class EventQueue<Value> {
  readonly #limit: number;
  readonly #weigh: (value: Value) => number;
  #values: Value[] = [];
  /** Index of the next value: to shift a long array moves all of it. */
  #next = 0;
  #weight = 0;
  #end: { readonly error: Error | undefined } | undefined;
  #wake: () => void = () => {};

  /** @param limit weight that may wait for the loop; `weigh` says what one value weighs */
  constructor(limit: number, weigh: (value: Value) => number) {
    this.#limit = limit;
    this.#weigh = weigh;
  }

  /** False: too much waits already. After the end nothing is taken. */
  push(value: Value): boolean {
    if (this.#end) return true;
    this.#weight += this.#weigh(value);
    if (this.#weight > this.#limit) return false;
    this.#values.push(value);
    this.#wake();
    return true;
  }

  /** No value comes after this; the loop ends, or throws `error`, when it has had all. */
  end(error?: Error): void {
    this.#end ??= { error };
    this.#wake();
  }

  /** Ends with an error at once: the loop does not get what waits for it. */
  abandon(error: Error): void {
    this.#values = [];
    this.#next = 0;
    this.end(error);
  }

  get ended(): boolean {
    return this.#end !== undefined;
  }

  /** The next value, or undefined at the end or when `signal` is aborted. @throws the error of the end */
  async next(signal: AbortSignal): Promise<Value | undefined> {
    for (;;) {
      if (signal.aborted) return undefined;
      const value = this.#take();
      if (value !== undefined) return value;
      if (this.#end?.error) throw this.#end.error;
      if (this.#end) return undefined;
      const { promise, resolve } = Promise.withResolvers<void>();
      const onAbort = (): void => resolve();
      this.#wake = resolve;
      signal.addEventListener("abort", onAbort, { once: true });
      await promise;
      signal.removeEventListener("abort", onAbort);
    }
  }

  #take(): Value | undefined {
    const value = this.#values[this.#next];
    if (value === undefined) return undefined;
    this.#weight -= this.#weigh(value);
    this.#next += 1;
    if (this.#next === this.#values.length) {
      this.#values = [];
      this.#next = 0;
    }
    return value;
  }
}
