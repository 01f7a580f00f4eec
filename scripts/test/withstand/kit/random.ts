import { randoms } from "../../../../test/support/randoms.ts";

/** A seeded random generator: the same seed gives the same numbers. */
export class Random {
  readonly #next: () => number;

  constructor(seed: number) {
    this.#next = randoms(seed);
    // Neighboring seeds start with similar numbers.
    for (let skipped = 0; skipped < 8; skipped++) this.#next();
  }

  /** An independent generator, so that the draws of one part do not change those of another. */
  fork(): Random {
    return new Random(this.int(0, 2 ** 31));
  }

  /** From 0 up to 1, without 1. */
  fraction(): number {
    return this.#next();
  }

  /** A whole number from `least` to `most`, both included. */
  int(least: number, most: number): number {
    return least + Math.floor(this.#next() * (most - least + 1));
  }

  /** True with this probability. */
  chance(probability: number): boolean {
    return this.#next() < probability;
  }

  pick<Item>(items: readonly Item[]): Item {
    const item = items[this.int(0, items.length - 1)];
    if (item === undefined) throw new Error("there is nothing to pick from");
    return item;
  }

  bytes(length: number): Buffer {
    const bytes = Buffer.allocUnsafe(length);
    for (let index = 0; index < length; index++) bytes[index] = this.int(0, 255);
    return bytes;
  }
}
