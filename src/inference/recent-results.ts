/** The results that were used last, by their keys: agents send the same schemas with every step. */
export class RecentResults<Result> {
  readonly #most: number;
  /** The one used last comes last. */
  readonly #results = new Map<string, Result>();

  constructor(most: number) {
    this.#most = most;
  }

  /** The known result, or the one that is made now. */
  async of(key: string, make: () => Promise<Result>): Promise<Result> {
    const result = this.#results.get(key) ?? (await make());
    this.#results.delete(key);
    this.#results.set(key, result);
    for (const oldest of this.#results.keys()) {
      if (this.#results.size <= this.#most) break;
      this.#results.delete(oldest);
    }
    return result;
  }
}
