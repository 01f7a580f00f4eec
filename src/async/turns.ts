/** Calls back in the next turn of the event loop: pages have no setImmediate. */
const inNextTurn: (callback: () => void) => void =
  "setImmediate" in globalThis ? setImmediate : (callback) => setTimeout(callback);

/**
 * Lets long work go on in small steps, one of them in each turn of the event loop however many wait: so all such work
 * together holds the loop no longer at once than its longest step.
 */
export class Turns {
  readonly #waiting: (() => void)[] = [];

  /** Resolves when the caller may do its next step. */
  next(): Promise<void> {
    return new Promise((resolve) => {
      this.#waiting.push(resolve);
      if (this.#waiting.length === 1) this.#schedule();
    });
  }

  #schedule(): void {
    inNextTurn(() => {
      this.#waiting.shift()?.();
      if (this.#waiting.length > 0) this.#schedule();
    });
  }
}

/** Those of this process: its loop is one. */
export const turns = new Turns();

/** As Array.prototype.map, a few elements in each turn of the event loop. */
export async function mapInTurns<Item, Result>(
  items: readonly Item[],
  perTurn: number,
  map: (item: Item, index: number) => Result,
): Promise<Result[]> {
  const results: Result[] = [];
  for (const [index, item] of items.entries()) {
    if (index > 0 && index % perTurn === 0) await turns.next();
    results.push(map(item, index));
  }
  return results;
}
