interface RingLimits {
  readonly maxCount: number;
  /** Of all entries together, as their owner weighs them. */
  readonly maxBytes: number;
}

interface Numbered<Entry> {
  readonly number: number;
  readonly entry: Entry;
}

/** Keeps the newest entries within two limits. Adding one takes the same short time however many there are. */
export class BoundedRing<Entry> {
  readonly #limits: RingLimits;
  /** By number; a map keeps the order in which they came. */
  readonly #entries = new Map<number, { readonly entry: Entry; readonly bytes: number }>();
  #bytes = 0;

  constructor(limits: RingLimits) {
    this.#limits = limits;
  }

  get bytes(): number {
    return this.#bytes;
  }

  get count(): number {
    return this.#entries.size;
  }

  /** @param number greater than those before */
  add(number: number, entry: Entry, bytes: number): void {
    this.#entries.set(number, { entry, bytes });
    this.#bytes += bytes;
    for (const [oldest, { bytes: freed }] of this.#entries) {
      if (this.#entries.size <= this.#limits.maxCount && this.#bytes <= this.#limits.maxBytes) break;
      this.#entries.delete(oldest);
      this.#bytes -= freed;
    }
  }

  /** Those with a greater number, the oldest first. */
  after(number: number): Numbered<Entry>[] {
    return [...this.#entries].flatMap(([each, { entry }]) =>
      each > number ? [{ number: each, entry }] : [],
    );
  }
}
