import { setTimeout as sleep } from "node:timers/promises";

/** A daemon's health is asked for again and again while it starts or ends, which takes it a few of these. */
const POLL_MS = 100;

/** Waits a moment before the next look. Rejects with the signal's reason when aborted. */
export async function pause(signal: AbortSignal): Promise<void> {
  try {
    await sleep(POLL_MS, undefined, { signal });
  } catch {
    signal.throwIfAborted();
  }
}
