import { setTimeout as delay } from "node:timers/promises";
import { HubHttpFailure, isTransient } from "./hub-failure.ts";

/** Waits between attempts without progress, in milliseconds: a wobble is bridged, an outage reported in 20 s. */
const BACK_OFF_MS = [500, 1000, 2500, 5000, 10_000];

/** A hub that asks for a longer wait than this is reported instead of waited for. */
const LONGEST_RETRY_AFTER_SECS = 60;

/** Waits; rejects with the signal's reason when it aborts. */
export type Sleep = (ms: number, signal: AbortSignal) => Promise<void>;

export const sleep: Sleep = async (ms, signal) => {
  try {
    await delay(ms, undefined, { signal });
  } catch (error) {
    signal.throwIfAborted();
    throw error;
  }
};

/** Counts the failures since the last progress and waits before the next attempt. */
export class BackOff {
  readonly #sleep: Sleep;
  #failures = 0;

  constructor(wait: Sleep) {
    this.#sleep = wait;
  }

  /** To be called when bytes have arrived: the patience starts anew. */
  progress(): void {
    this.#failures = 0;
  }

  /** Waits as long as the failure asks for. Rethrows it when it is final or patience is at its end. */
  async wait(error: unknown, signal: AbortSignal): Promise<void> {
    signal.throwIfAborted();
    const backOff = BACK_OFF_MS[this.#failures++];
    if (!isTransient(error) || backOff === undefined) throw error;
    const asked = error instanceof HubHttpFailure ? (error.retryAfterSecs ?? 0) : 0;
    if (asked > LONGEST_RETRY_AFTER_SECS) throw error;
    await this.#sleep(Math.max(backOff, asked * 1000), signal);
  }
}

/** Runs an idempotent action until it succeeds or its failure is final. */
export async function withRetries<T>(action: () => Promise<T>, wait: Sleep, signal: AbortSignal): Promise<T> {
  const backOff = new BackOff(wait);
  for (;;) {
    try {
      return await action();
    } catch (error) {
      await backOff.wait(error, signal);
    }
  }
}
