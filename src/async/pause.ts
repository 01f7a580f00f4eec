import { setTimeout as sleep } from "node:timers/promises";

/** Waits; rejects with the signal's reason when it aborts. */
export async function pause(millis: number, signal: AbortSignal): Promise<void> {
  try {
    await sleep(millis, undefined, { signal });
  } catch {
    signal.throwIfAborted();
  }
}
