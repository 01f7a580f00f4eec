type Timer = ReturnType<typeof setTimeout>;

/** Maximum delay of a timer, in milliseconds; a longer one would fire at once. */
export const MAX_TIMER_MS = 2 ** 31 - 1;

/** Returns a function that is true at most once in this many milliseconds. */
export function atMostEvery(millis: number): () => boolean {
  let next = Number.NEGATIVE_INFINITY;
  return () => {
    const now = performance.now();
    if (now < next) return false;
    next = now + millis;
    return true;
  };
}

/** Steps into which a watchdog divides its time. */
const STEPS = 10;

/** Starts a timer that does not keep the process alive. */
export function unrefTimer(callback: () => void, milliseconds: number): Timer {
  const timer = setTimeout(callback, milliseconds);
  unref(timer);
  return timer;
}

/**
 * Calls back, once, when it has not been reset for a while. Counts steps instead of reading a clock: when this process
 * itself is suspended (laptop sleep, SIGSTOP, a machine that swaps), that counts as one step, regardless of its length.
 * Messages that have arrived by then are read before the callback.
 */
export class Watchdog {
  readonly #onSilence: () => void;
  readonly #timer: Timer | undefined;
  #stepsLeft = STEPS;

  /** @param milliseconds Infinity: never calls back */
  constructor(milliseconds: number, onSilence: () => void) {
    this.#onSilence = onSilence;
    if (!Number.isFinite(milliseconds)) return;
    this.#timer = setInterval(() => this.#step(), Math.min(Math.ceil(milliseconds / STEPS), MAX_TIMER_MS));
    unref(this.#timer);
  }

  reset(): void {
    // One more, because the current step has already begun.
    this.#stepsLeft = STEPS + 1;
  }

  stop(): void {
    clearInterval(this.#timer);
    this.#stepsLeft = Number.POSITIVE_INFINITY;
  }

  #step(): void {
    this.#stepsLeft -= 1;
    if (this.#stepsLeft > 0) return;
    // Timers run before messages are read.
    runInNextTick(() => {
      if (this.#stepsLeft > 0) return;
      this.stop();
      this.#onSilence();
    });
  }
}

/** Lets the process end despite a timer. In a page timers are numbers, and keep nothing alive. */
function unref(timer: Timer): void {
  if (typeof timer === "object") timer.unref();
}

const waiting: (() => void)[] = [];

/**
 * Resolves when the caller may do the next step of long work: one caller per tick of the event loop, so that all such work
 * together never blocks the loop for longer than its longest step.
 */
export function nextTimeSlice(): Promise<void> {
  return new Promise((resolve) => {
    waiting.push(resolve);
    if (waiting.length === 1) schedule();
  });
}

function schedule(): void {
  runInNextTick(() => {
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

/** Calls back in the next tick of the event loop, after messages that have arrived were read. */
function runInNextTick(callback: () => void): void {
  // Pages have no setImmediate.
  if ("setImmediate" in globalThis) setImmediate(callback);
  else setTimeout(callback);
}
