import { setTimeout as sleep } from "node:timers/promises";

/** Interval at which a daemon's health is polled while it starts or ends. */
const POLL_MS = 100;

/** Waits before the next poll. Rejects with the signal's reason when aborted. */
export async function pause(signal: AbortSignal, millis = POLL_MS): Promise<void> {
  try {
    await sleep(millis, undefined, { signal });
  } catch {
    signal.throwIfAborted();
  }
}
