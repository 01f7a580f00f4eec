type Timer = ReturnType<typeof setTimeout>;

/** Maximum delay of a timer, in milliseconds; a longer one would fire at once. */
export const MAX_TIMER_MS = 2 ** 31 - 1;

/** In which the time of a watchdog passes. */
const STEPS = 10;

/** A timer that keeps no process alive. */
export function backgroundTimer(callback: () => void, milliseconds: number): Timer {
  const timer = setTimeout(callback, milliseconds);
  letEnd(timer);
  return timer;
}

/**
 * Calls back, once, when it has not been reset for a while. It counts steps instead of reading a clock: when this process
 * itself is held up (a laptop sleeps, SIGSTOP, a machine that swaps), that is one step, however long it takes. What has
 * arrived by then is read before silence counts.
 */
export class Watchdog {
  readonly #onSilence: () => void;
  readonly #timer: Timer | undefined;
  #stepsLeft = STEPS;

  /** @param milliseconds Infinity: it never calls back */
  constructor(milliseconds: number, onSilence: () => void) {
    this.#onSilence = onSilence;
    if (!Number.isFinite(milliseconds)) return;
    this.#timer = setInterval(() => this.#step(), Math.min(Math.ceil(milliseconds / STEPS), MAX_TIMER_MS));
    letEnd(this.#timer);
  }

  reset(): void {
    // The present step has begun before.
    this.#stepsLeft = STEPS + 1;
  }

  stop(): void {
    clearInterval(this.#timer);
    this.#stepsLeft = Number.POSITIVE_INFINITY;
  }

  #step(): void {
    this.#stepsLeft -= 1;
    if (this.#stepsLeft > 0) return;
    // Timers come before what has arrived.
    inNextTurn(() => {
      if (this.#stepsLeft > 0) return;
      this.stop();
      this.#onSilence();
    });
  }
}

/** Has a timer keep no process alive. A page has numbers for timers, and nothing that they keep alive. */
function letEnd(timer: Timer): void {
  if (typeof timer === "object") timer.unref();
}

const waiting: (() => void)[] = [];

/**
 * Resolves when the caller may do the next step of long work: one caller per turn of the event loop, however many wait. So
 * all such work together never blocks the loop for longer than its longest step.
 */
export function nextTimeSlice(): Promise<void> {
  return new Promise((resolve) => {
    waiting.push(resolve);
    if (waiting.length === 1) schedule();
  });
}

function schedule(): void {
  inNextTurn(() => {
    waiting.shift()?.();
    if (waiting.length > 0) schedule();
  });
}

/** Like Array.prototype.map, with a few elements per time slice. */
export async function mapInTimeSlices<Item, Result>(
  items: readonly Item[],
  perSlice: number,
  map: (item: Item, index: number) => Result,
): Promise<Result[]> {
  const results: Result[] = [];
  for (const [index, item] of items.entries()) {
    if (index > 0 && index % perSlice === 0) await nextTimeSlice();
    results.push(map(item, index));
  }
  return results;
}

/** Calls back in the next turn of the event loop, after messages that have arrived were read. */
function inNextTurn(callback: () => void): void {
  // Pages have no setImmediate.
  if ("setImmediate" in globalThis) setImmediate(callback);
  else setTimeout(callback);
}
