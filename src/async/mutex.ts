import { abortable } from "./abortable.ts";

/** Lets one caller in at a time, in the order of their calls. */
export class Mutex {
  #last: Promise<void> = Promise.resolve();

  /**
   * Resolves with the lock when everyone before has given it back; disposing it twice frees it once.
   * @throws the signal's reason when it aborts first
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
