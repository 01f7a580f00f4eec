/** Values on their way from a callback to one `for await` loop, with an end or an error after the last. */
export class EventQueue<Value> {
  readonly #values: Value[] = [];
  #end: { readonly error: Error | undefined } | undefined;
  #wake: () => void = () => {};

  push(value: Value): void {
    this.#values.push(value);
    this.#wake();
  }

  /** No value comes after this; the loop ends, or throws `error`, when it has had all. */
  end(error?: Error): void {
    this.#end ??= { error };
    this.#wake();
  }

  get ended(): boolean {
    return this.#end !== undefined;
  }

  /** The next value, or undefined at the end or when `signal` is aborted. @throws the error of the end */
  async next(signal: AbortSignal): Promise<Value | undefined> {
    for (;;) {
      if (signal.aborted) return undefined;
      const value = this.#values.shift();
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
}
