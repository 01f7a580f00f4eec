/** Long enough for a steady number, short enough to follow changes of the network. */
const MAX_WINDOW_MS = 5000;
/** A shorter measurement would be too inaccurate. */
const MIN_WINDOW_MS = 400;

/** Measures the speed of a download over the last seconds. */
export class SpeedMeter {
  readonly #now: () => number;
  #samples: readonly { readonly at: number; readonly bytes: number }[] = [];

  constructor(now: () => number = () => performance.now()) {
    this.#now = now;
  }

  /** @param bytes total number of bytes received so far */
  add(bytes: number): void {
    const at = this.#now();
    this.#samples = [...this.#samples.filter((each) => at - each.at <= MAX_WINDOW_MS), { at, bytes }];
  }

  /** Bytes per second; undefined at first. */
  get speed(): number | undefined {
    const [first] = this.#samples;
    const last = this.#samples.at(-1);
    if (!first || !last || last.at - first.at < MIN_WINDOW_MS) return undefined;
    return ((last.bytes - first.bytes) / (last.at - first.at)) * 1000;
  }
}
