import { abortable } from "./abortable.ts";

/** A lock for one holder at a time, in the order of the calls. */
export class Mutex {
  #last: Promise<void> = Promise.resolve();

  /**
   * Resolves with the lock when all earlier holders have released it. Disposing it twice releases it once.
   * @throws the signal's reason if it aborts first
   */
  async lock(signal: AbortSignal): Promise<Disposable> {
    const held = Promise.withResolvers<void>();
    const before = this.#last;
    this.#last = before.then(() => held.promise);
    try {
      await abortable(before, signal);
    } catch (error) {
      held.resolve();
      throw error;
    }
    return { [Symbol.dispose]: held.resolve };
  }
}
