import type { Clock } from "../../src/models/loading/available-memory.ts";

/** A clock that only the test moves. */
export class FakeClock implements Clock {
  #now = 1_000_000;
  readonly #timers = new Set<{ at: number; callback: () => void }>();

  now(): number {
    return this.#now;
  }

  after(milliseconds: number, callback: () => void): () => void {
    const timer = { at: this.#now + milliseconds, callback };
    this.#timers.add(timer);
    return () => this.#timers.delete(timer);
  }

  /** Lets time pass, with everything that becomes due on the way. */
  async advance(milliseconds: number): Promise<void> {
    this.#now += milliseconds;
    for (const timer of this.#timers) {
      if (timer.at > this.#now) continue;
      this.#timers.delete(timer);
      timer.callback();
    }
    await settle();
  }
}

/** Lets everything that waits for nothing but promises come to an end. */
export async function settle(): Promise<void> {
  await new Promise((resolve) => setImmediate(resolve));
}
