import { toError } from "../../../errors/to-error.ts";
import type { HubRetry } from "../hub-store.ts";
import { HubHttpFailure, HubNetworkFailure, isContradiction, isTransient } from "./hub-error.ts";

/** Waits between attempts without progress, in milliseconds: long enough for a glitch, and an outage is reported in 20 s. */
const BACK_OFF_MS = [500, 1000, 2500, 5000, 10_000];

/** The same before any data has arrived: a missing network or a wrong address should be reported quickly. */
const NEVER_CONNECTED_BACK_OFF_MS = [500];

/** Before a request is repeated because its answer made no sense. */
const CONTRADICTION_BACK_OFF_MS = [500];

/** If a hub asks for a longer wait, the failure is reported instead. */
const LONGEST_RETRY_AFTER_SECS = 60;

/** Waits; rejects with the signal's reason when it aborts. */
export type Sleep = (ms: number, signal: AbortSignal) => Promise<void>;

interface BackOffOptions {
  readonly sleep: Sleep;
  /** Called before each wait. */
  readonly onRetry: (retry: HubRetry) => void;
  /** True for the first request to a hub, which is not retried for long if nobody answers. */
  readonly firstContact?: boolean;
}

/** Counts the failures since the last progress and waits before the next attempt. */
export class BackOff {
  readonly #options: BackOffOptions;
  #failures = 0;
  #contradictions = 0;

  constructor(options: BackOffOptions) {
    this.#options = options;
  }

  /** Call it when data has arrived: the sequence of waits starts over. */
  progress(): void {
    this.#failures = 0;
    this.#contradictions = 0;
  }

  /** Waits as long as the failure calls for. Rethrows it when it is final or there have been too many. */
  async wait(error: unknown, signal: AbortSignal): Promise<void> {
    signal.throwIfAborted();
    const { sleep: wait, onRetry } = this.#options;
    const backOff = this.#nextBackOff(error);
    if (backOff === undefined) throw error;
    const asked = error instanceof HubHttpFailure ? (error.retryAfterSecs ?? 0) : 0;
    if (asked > LONGEST_RETRY_AFTER_SECS) throw error;
    const waitMs = Math.max(backOff, asked * 1000);
    onRetry({ reason: toError(error).message, waitMs });
    await wait(waitMs, signal);
  }

  #nextBackOff(error: unknown): number | undefined {
    if (isContradiction(error)) return CONTRADICTION_BACK_OFF_MS[this.#contradictions++];
    if (!isTransient(error)) return undefined;
    const isNobody = error instanceof HubNetworkFailure && error.neverConnected;
    const isFirstContact = this.#options.firstContact === true;
    return (isFirstContact && isNobody ? NEVER_CONNECTED_BACK_OFF_MS : BACK_OFF_MS)[this.#failures++];
  }
}

/** Sends the first request to a hub, with retries until it answers or the failure is final. */
export async function withRetries<T>(
  action: () => Promise<T>,
  options: Pick<BackOffOptions, "sleep" | "onRetry">,
  signal: AbortSignal,
): Promise<T> {
  const backOff = new BackOff({ ...options, firstContact: true });
  for (;;) {
    try {
      return await action();
    } catch (error) {
      await backOff.wait(error, signal);
    }
  }
}
