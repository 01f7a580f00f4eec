import { toError } from "../../../errors/service-error.ts";
import type { HubRetry } from "../hub-types.ts";
import { HubHttpFailure, HubNetworkFailure, isContradiction, isTransient } from "./hub-error.ts";

/** Waits between attempts without progress: bridges short interruptions, and reports an outage after 20 s. */
const BACK_OFF_MS = [500, 1000, 2500, 5000, 10_000];

/** Waits if the first request to a hub cannot connect: no network or a wrong address is reported quickly. */
const NEVER_CONNECTED_BACK_OFF_MS = [500];

/** Wait before the retry of a request whose answer was contradictory. */
const CONTRADICTION_BACK_OFF_MS = [500];

/** Longest wait that a hub may request with Retry-After; a longer one is reported as a failure. */
const MAX_RETRY_AFTER_SECS = 60;

/** Waits; rejects with the signal's reason when it aborts. */
export type Sleep = (ms: number, signal: AbortSignal) => Promise<void>;

export interface BackOffOptions {
  readonly sleep: Sleep;
  readonly onRetry: (retry: HubRetry) => void;
  /** True for the first request to a hub, which has few retries while the hub is unreachable. */
  readonly isFirstRequest?: boolean;
}

/** Counts failures since the last progress, and waits before the next attempt. */
export class BackOff {
  readonly #options: BackOffOptions;
  #failures = 0;
  #contradictions = 0;

  constructor(options: BackOffOptions) {
    this.#options = options;
  }

  /** Restarts the sequence of waits; to be called when data has arrived. */
  progress(): void {
    this.#failures = 0;
    this.#contradictions = 0;
  }

  /** Waits before the next attempt. Rethrows a final failure, or the last one of too many. */
  async wait(error: unknown, signal: AbortSignal): Promise<void> {
    signal.throwIfAborted();
    const { sleep: wait, onRetry } = this.#options;
    const backOff = this.#nextBackOff(error);
    if (backOff === undefined) throw error;
    const retryAfterSecs = error instanceof HubHttpFailure ? (error.retryAfterSecs ?? 0) : 0;
    if (retryAfterSecs > MAX_RETRY_AFTER_SECS) throw error;
    const waitMs = Math.max(backOff, retryAfterSecs * 1000);
    onRetry({ status: "retrying", reason: toError(error).message, waitMs });
    await wait(waitMs, signal);
  }

  #nextBackOff(error: unknown): number | undefined {
    if (isContradiction(error)) return CONTRADICTION_BACK_OFF_MS[this.#contradictions++];
    if (!isTransient(error)) return undefined;
    const neverConnected = error instanceof HubNetworkFailure && error.neverConnected;
    const isFirstRequest = this.#options.isFirstRequest === true;
    return (isFirstRequest && neverConnected ? NEVER_CONNECTED_BACK_OFF_MS : BACK_OFF_MS)[this.#failures++];
  }
}

/** Runs the first request to a hub, with retries until it succeeds or fails finally. */
export async function withRetries<T>(
  action: () => Promise<T>,
  options: Pick<BackOffOptions, "sleep" | "onRetry">,
  signal: AbortSignal,
): Promise<T> {
  const backOff = new BackOff({ ...options, isFirstRequest: true });
  for (;;) {
    try {
      return await action();
    } catch (error) {
      await backOff.wait(error, signal);
    }
  }
}
