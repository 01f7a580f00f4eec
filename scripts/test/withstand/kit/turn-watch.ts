import { threadMs } from "../../../../test/support/longest-turn.ts";

const LOOK_EVERY_MS = 10;

/**
 * Measures turns of this thread's event loop by their processor time, which is how long they hold it on an idle machine: for a
 * busy one, which runs something else meanwhile, they are no longer.
 */
export class TurnWatch {
  readonly #timer: NodeJS.Timeout;
  #before = threadMs();
  #longestMs = 0;

  constructor() {
    this.#timer = setInterval(() => this.#look(), LOOK_EVERY_MS);
  }

  /** Ends the watch. Returns the milliseconds of the longest turn. */
  stop(): number {
    clearInterval(this.#timer);
    this.#look();
    return this.#longestMs;
  }

  #look(): void {
    const now = threadMs();
    this.#longestMs = Math.max(this.#longestMs, now - this.#before);
    this.#before = now;
  }
}
