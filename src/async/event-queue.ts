/** Values on their way from a callback to one reader, with an end or an error behind the last. */
export class EventQueue<Value> implements AsyncIterableIterator<Value, undefined> {
  readonly #limit: number;
  readonly #weigh: (value: Value) => number;
  #values: Value[] = [];
  /** Index of the next value: to shift a long array moves all of it. */
  #next = 0;
  #weight = 0;
  #end: { readonly error: unknown } | undefined;
  #wake: (() => void) | undefined;

  /** @param limit weight that may wait for the reader; `weigh` says what one value weighs */
  constructor(limit: number, weigh: (value: Value) => number) {
    this.#limit = limit;
    this.#weigh = weigh;
  }

  /** False when too much waits already: the value is not taken. Behind the end nothing is taken, silently. */
  push(value: Value): boolean {
    if (this.#end) return true;
    const weight = this.#weight + this.#weigh(value);
    if (weight > this.#limit) return false;
    this.#weight = weight;
    this.#values.push(value);
    this.#wake?.();
    return true;
  }

  /** No value comes after this; the reader still gets those that wait, then the end or the error. */
  end(error?: unknown): void {
    this.#end ??= { error };
    this.#wake?.();
  }

  /** Ends at once: the reader does not get what waits for it. */
  clear(error?: unknown): void {
    this.#values = [];
    this.#next = 0;
    this.end(error);
  }

  /** Resolves when the next value is there, or the end. @throws the error that the queue ended with, when no value waits */
  async ready(): Promise<void> {
    while (this.#next === this.#values.length) {
      if (this.#end?.error !== undefined) throw this.#end.error;
      if (this.#end) return;
      await new Promise<void>((resolve) => {
        this.#wake = resolve;
      });
    }
  }

  async next(): Promise<IteratorResult<Value, undefined>> {
    await this.ready();
    const value = this.#values[this.#next];
    if (value === undefined) return { done: true, value: undefined };
    this.#weight -= this.#weigh(value);
    this.#next += 1;
    if (this.#next === this.#values.length) {
      this.#values = [];
      this.#next = 0;
    }
    return { done: false, value };
  }

  /** The reader leaves. */
  async return(): Promise<IteratorResult<Value, undefined>> {
    this.clear();
    return { done: true, value: undefined };
  }

  [Symbol.asyncIterator](): this {
    return this;
  }
}
