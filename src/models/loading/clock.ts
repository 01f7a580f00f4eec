import { MAX_TIMER_MS } from "../../async/watchdog.ts";

/** Time as the models layer sees it; tests bring their own. */
export interface Clock {
  /** Unix milliseconds. */
  now(): number;
  /** Calls back once after this many milliseconds; returns a function that cancels it. */
  after(milliseconds: number, callback: () => void): () => void;
}

export const systemClock: Clock = {
  now: () => Date.now(),
  after(milliseconds, callback) {
    let timer: NodeJS.Timeout;
    const arm = (left: number): void => {
      const step = Math.min(left, MAX_TIMER_MS);
      // A pending unload must not keep the process alive.
      timer = setTimeout(() => (left > step ? arm(left - step) : callback()), step).unref();
    };
    arm(milliseconds);
    return () => clearTimeout(timer);
  },
};
