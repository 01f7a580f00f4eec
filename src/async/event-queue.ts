/** Queue from a callback to one reader, with an end or an error. */
export class EventQueue<Value> implements AsyncIterableIterator<Value, undefined> {
  readonly #limit: number;
  readonly #weigh: (value: Value) => number;
  #values: Value[] = [];
  /** Index of the next value, because shifting a long array is slow. */
  #next = 0;
  #weight = 0;
  #end: { readonly error: unknown } | undefined;
  #wake: (() => void) | undefined;

  /** @param limit maximum total weight of queued values; `weigh` returns the weight of one value */
  constructor(limit: number, weigh: (value: Value) => number) {
    this.#limit = limit;
    this.#weigh = weigh;
  }

  /** Adds a value; returns false if that would exceed the limit. After the end, values are silently dropped. */
  push(value: Value): boolean {
    if (this.#end) return true;
    const weight = this.#weight + this.#weigh(value);
    if (weight > this.#limit) return false;
    this.#weight = weight;
    this.#values.push(value);
    this.#wake?.();
    return true;
  }

  /** Ends the queue: the reader still gets the queued values, then the end or the error. */
  end(error?: unknown): void {
    this.#end ??= { error };
    this.#wake?.();
  }

  /** Ends the queue immediately and drops the queued values. */
  clear(error?: unknown): void {
    this.#values = [];
    this.#next = 0;
    this.end(error);
  }

  /** Resolves when there is a value or the end. @throws the error that the queue ended with, if no values are left */
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

  /** Called when the reader stops early. */
  async return(): Promise<IteratorResult<Value, undefined>> {
    this.clear();
    return { done: true, value: undefined };
  }

  [Symbol.asyncIterator](): this {
    return this;
  }
}
