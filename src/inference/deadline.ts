import { Watchdog } from "../async/timers.ts";
import { ServiceError } from "../errors/service-error.ts";
import type { InferenceRequest } from "./inference.ts";

/**
 * Signal that aborts with its parent, or with `deadline_exceeded` when the time is up. Disposing it removes its timer
 * and listener.
 */
export class Deadline implements Disposable {
  readonly #controller = new AbortController();
  readonly #parent: AbortSignal;
  readonly #watchdog: Watchdog;
  readonly #onParentAbort = () => this.#controller.abort(this.#parent.reason);

  /** @param limitMs milliseconds; Infinity: aborts only with its parent */
  constructor(parent: AbortSignal, limitMs: number) {
    this.#parent = parent;
    if (parent.aborted) this.#onParentAbort();
    else parent.addEventListener("abort", this.#onParentAbort, { once: true });
    this.#watchdog = new Watchdog(limitMs, () => this.#expire(limitMs));
  }

  get signal(): AbortSignal {
    return this.#controller.signal;
  }

  /** Aborts early; the first reason counts. */
  abort(reason: unknown): void {
    this.#controller.abort(reason);
  }

  [Symbol.dispose](): void {
    this.#watchdog.stop();
    this.#parent.removeEventListener("abort", this.#onParentAbort);
  }

  #expire(limitMs: number): void {
    const message = `The request ran longer than ${limitMs / 1000} s (engine.request_timeout) and was ended.`;
    this.#controller.abort(new ServiceError("deadline_exceeded", message));
  }
}

/** Creates the deadline of a request, without a time limit if the machine that sent it enforces one. */
export function deadlineOf(
  { origin }: Pick<InferenceRequest, "origin">,
  signal: AbortSignal,
  limitMs: number,
): Deadline {
  return new Deadline(signal, origin === "remote" ? Number.POSITIVE_INFINITY : limitMs);
}
