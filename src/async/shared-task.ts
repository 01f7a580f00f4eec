import { abortable } from "./abortable.ts";

/**
 * A task that several callers wait for. It is aborted when all callers have aborted; a caller without a signal never
 * does.
 */
export class SharedTask<T> {
  readonly #controller = new AbortController();
  readonly #result: Promise<T>;
  #waiting = 0;

  constructor(run: (signal: AbortSignal) => Promise<T>) {
    this.#result = run(this.#controller.signal);
    // All callers may have left when it fails; those who wait still see the rejection.
    this.#result.catch(() => undefined);
  }

  /** Settles when the task has ended, in any way; never rejects. */
  get settled(): Promise<unknown> {
    return this.#result.catch(() => undefined);
  }

  /** Whether the task has been aborted. */
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
