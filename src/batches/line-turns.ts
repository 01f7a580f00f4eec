/** Lines of one batch before another one of the same model is served; lines in a row have common beginnings. */
const LINES_IN_A_ROW = 32;
/** Lines that a batch has as soon as it is there, in between those of others; and of others, before the next new one. */
const FIRST_LINES = 8;

interface Owned {
  /** Whose it is. */
  readonly owner: string;
}

/**
 * Whose lines come next: a new batch begins at once, whatever else there is to do; then owners take turns, and so do the
 * batches of each.
 */
export class LineTurns<Batch extends Owned> {
  /** By owner; those that have waited longest come first, owners too. */
  readonly #byOwner = new Map<string, Set<Batch>>();
  /** Those that have not had a line. */
  readonly #fresh = new Set<Batch>();
  #current: Batch | undefined;
  #inARow = 0;
  /** Whether the current one is new, and came before others that had waited longer. */
  #hasJumped = false;

  add(batch: Batch): void {
    const { owner } = batch;
    const its = this.#byOwner.get(owner) ?? new Set();
    its.add(batch);
    if (its.size === 1) this.#byOwner.set(owner, its);
    this.#fresh.add(batch);
  }

  delete(batch: Batch): void {
    const its = this.#byOwner.get(batch.owner);
    its?.delete(batch);
    if (its?.size === 0) this.#byOwner.delete(batch.owner);
    this.#fresh.delete(batch);
    if (this.#current === batch) this.#current = undefined;
  }

  /** All batches, in the order in which they are to be asked for a line. */
  order(): ReadonlySet<Batch> {
    const newest = [...this.#fresh].toReversed();
    const longest = this.#longest();
    const others = this.#hasJumped ? [...longest, ...newest] : [...newest, ...longest];
    const goesOn = this.#current !== undefined && this.#inARow < this.#most();
    return new Set(goesOn && this.#current ? [this.#current, ...others] : others);
  }

  /** One of them has had a line. */
  took(batch: Batch): void {
    this.#inARow = batch === this.#current ? this.#inARow + 1 : 1;
    if (batch === this.#current && this.#inARow <= this.#most()) return;
    const [longest] = this.#longest();
    this.#hasJumped = this.#fresh.delete(batch) && batch !== longest;
    this.#current = batch;
    this.#inARow = 1;
    const its = this.#byOwner.get(batch.owner);
    if (!its?.delete(batch)) return;
    its.add(batch);
    this.#byOwner.delete(batch.owner);
    this.#byOwner.set(batch.owner, its);
  }

  #longest(): readonly Batch[] {
    return Array.from(this.#byOwner.values(), (its) => Array.from(its)).flat();
  }

  #most(): number {
    return this.#hasJumped || this.#fresh.size > 0 ? FIRST_LINES : LINES_IN_A_ROW;
  }
}
