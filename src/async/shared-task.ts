import { abortable } from "./abortable.ts";

/**
 * A piece of work that several callers wait for. It is aborted when every caller has gone away; a caller without a
 * signal never goes away.
 */
export class SharedTask<T> {
  readonly #controller = new AbortController();
  readonly #result: Promise<T>;
  #waiting = 0;

  constructor(run: (signal: AbortSignal) => Promise<T>) {
    this.#result = run(this.#controller.signal);
    // Callers may all have left when it fails; those who wait still see the rejection.
    this.#result.catch(() => undefined);
  }

  /** Settles when the work has ended, however it did; never rejects. */
  get settled(): Promise<unknown> {
    return this.#result.catch(() => undefined);
  }

  /** True when the work has been told to end. */
  get aborted(): boolean {
    return this.#controller.signal.aborted;
  }

  /** Waits for the result; rejects with the signal's reason when that is aborted first. */
  async join(signal?: AbortSignal): Promise<T> {
    this.#waiting += 1;
    if (!signal) return await this.#result;
    // At once, so that whoever comes next sees that this work is over.
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

  /** Ends the work for everyone; what they see is what the work makes of its signal. */
  abort(reason: unknown): void {
    this.#controller.abort(reason);
  }
}
