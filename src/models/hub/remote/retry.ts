import { setTimeout as delay } from "node:timers/promises";
import type { HubRetry } from "../../model.ts";
import { HubHttpFailure, HubNetworkFailure, isContradiction, isTransient } from "./hub-error.ts";

/** Waits between attempts without progress, in milliseconds: a wobble is bridged, an outage reported in 20 s. */
const BACK_OFF_MS = [500, 1000, 2500, 5000, 10_000];

/** The same before anything has come: who has no network, or a wrong address, is to be told at once. */
const NEVER_CONNECTED_BACK_OFF_MS = [500];

/** Before an answer that makes no sense is asked for once more. */
const CONTRADICTION_BACK_OFF_MS = [500];

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

export interface BackOffOptions {
  readonly sleep: Sleep;
  /** Told before each wait. */
  readonly onRetry: (retry: HubRetry) => void;
  /** True for the first question to a hub: where nobody is, it is not asked for long. */
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

  /** To be called when bytes have arrived: the patience starts anew. */
  progress(): void {
    this.#failures = 0;
    this.#contradictions = 0;
  }

  /** Waits as long as the failure asks for. Rethrows it when it is final or patience is at its end. */
  async wait(error: unknown, signal: AbortSignal): Promise<void> {
    signal.throwIfAborted();
    const { sleep: wait, onRetry } = this.#options;
    const backOff = this.#nextBackOff(error);
    if (backOff === undefined) throw error;
    const asked = error instanceof HubHttpFailure ? (error.retryAfterSecs ?? 0) : 0;
    if (asked > LONGEST_RETRY_AFTER_SECS) throw error;
    const waitMs = Math.max(backOff, asked * 1000);
    onRetry({ reason: error instanceof Error ? error.message : String(error), waitMs });
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

/** Asks a hub for the first time, until it answers or its failure is final. */
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
