/** Long enough that a number can be read, short enough that it follows a change of the network. */
const WINDOW_MS = 5000;
/** Before that, a speed would be guessed from a few bytes. */
const SHORTEST_MS = 400;

/** How fast something has arrived in the last seconds. */
export class SpeedMeter {
  readonly #now: () => number;
  #samples: readonly { readonly at: number; readonly bytes: number }[] = [];

  constructor(now: () => number = () => performance.now()) {
    this.#now = now;
  }

  /** @param bytes that have arrived by now, in all */
  add(bytes: number): void {
    const at = this.#now();
    this.#samples = [...this.#samples.filter((each) => at - each.at <= WINDOW_MS), { at, bytes }];
  }

  /** Bytes a second; undefined: not known yet. */
  get speed(): number | undefined {
    const [first] = this.#samples;
    const last = this.#samples.at(-1);
    if (!first || !last || last.at - first.at < SHORTEST_MS) return undefined;
    return ((last.bytes - first.bytes) / (last.at - first.at)) * 1000;
  }
}
