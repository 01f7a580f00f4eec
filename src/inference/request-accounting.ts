import type { Endpoint, Metrics } from "../metrics/metrics.ts";

/** Counts requests from their arrival to their end, however they end. */
export class RequestAccounting {
  readonly #metrics: Metrics;
  readonly #now: () => number;
  #active = 0;

  constructor(metrics: Metrics, now: () => number) {
    this.#metrics = metrics;
    this.#now = now;
  }

  /** Requests running or waiting. */
  get active(): number {
    return this.#active;
  }

  /** Dispose the result when the request has ended. */
  begin(endpoint: Endpoint): Disposable {
    const startedAt = this.#now();
    this.#active += 1;
    this.#metrics.requestStarted(endpoint);
    let ended = false;
    return {
      [Symbol.dispose]: () => {
        if (ended) return;
        ended = true;
        this.#active -= 1;
        this.#metrics.requestFinished(endpoint, (this.#now() - startedAt) / 1000);
      },
    };
  }
}
