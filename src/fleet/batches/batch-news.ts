/**
 * What is heard of batches: promises that resolve with the next news. Each takes the place of the one before, which never
 * resolves: it would keep everything that has waited for it until there are news.
 */
export class BatchNews {
  readonly #ofEach = new Map<string, PromiseWithResolvers<void>>();
  #ofOthers = Promise.withResolvers<void>();

  /** That a batch may have changed. */
  of(batch: string): Promise<void> {
    const news = Promise.withResolvers<void>();
    this.#ofEach.set(batch, news);
    return news.promise;
  }

  /** That something may have changed of a batch for whose news nobody has asked. */
  ofOthers(): Promise<void> {
    this.#ofOthers = Promise.withResolvers();
    return this.#ofOthers.promise;
  }

  /** @param batch undefined: any may have changed */
  heard(batch?: string): void {
    const ids = batch === undefined ? [...this.#ofEach.keys()] : [batch];
    const asked = ids.filter((id) => this.#ofEach.has(id));
    for (const id of asked) this.#ofEach.get(id)?.resolve();
    if (batch === undefined || asked.length === 0) this.#ofOthers.resolve();
  }

  /** Nobody asks for its news any longer. */
  forget(batch: string): void {
    this.#ofEach.delete(batch);
  }
}
