type Timer = ReturnType<typeof setTimeout>;

/** A timer that keeps no process alive. */
export function backgroundTimer(callback: () => void, milliseconds: number): Timer {
  const timer = setTimeout(callback, milliseconds);
  // A page has numbers for timers, and nothing that they keep alive.
  if (typeof timer === "object") timer.unref();
  return timer;
}

/** Calls back when it has not been reset for a while. */
export class Watchdog {
  readonly #milliseconds: number;
  readonly #onSilence: () => void;
  #timer: Timer;

  constructor(milliseconds: number, onSilence: () => void) {
    this.#milliseconds = milliseconds;
    this.#onSilence = onSilence;
    this.#timer = backgroundTimer(onSilence, milliseconds);
  }

  reset(): void {
    if (typeof this.#timer === "object") {
      this.#timer.refresh();
    } else {
      clearTimeout(this.#timer);
      this.#timer = backgroundTimer(this.#onSilence, this.#milliseconds);
    }
  }

  stop(): void {
    clearTimeout(this.#timer);
  }
}
