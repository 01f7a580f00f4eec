import { randoms } from "../../../../test/support/randoms.ts";

/** Repeatable choices: the same seed makes the same ones. */
export class Random {
  readonly #next: () => number;

  constructor(seed: number) {
    this.#next = randoms(seed);
    // Neighboring seeds begin alike.
    for (let skipped = 0; skipped < 8; skipped++) this.#next();
  }

  /** A generator of its own, so that what one part draws does not move another's numbers. */
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
