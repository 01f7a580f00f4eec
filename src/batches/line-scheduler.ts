import type { Attempt, PendingLines } from "./line-queue.ts";

/** Time that one model's lines run while other models wait: loading a model takes seconds. */
const MODEL_TURN_MS = 5 * 60_000;
/** How often the queues are checked for further lines while some run. */
const POLL_INTERVAL_MS = 1000;
/** Maximum pause of the scheduler. */
const MAX_SLEEP_MS = 60_000;

/** When a line is to be run again. */
export interface Retry {
  /** Unix milliseconds. */
  readonly at: number;
  /** True if no other line may run before either, for example because memory is exhausted. */
  readonly blocksAll: boolean;
}

/** Batch as the scheduler sees it. */
export interface BatchLines {
  /** Owner of the batch: the scheduler alternates between owners. */
  readonly owner: string;
  readonly queue: PendingLines;
  /** Aborts when no more lines are to be run. */
  readonly signal: AbortSignal;
  /** Runs a line; resolves with undefined if it is done. */
  run(attempt: Attempt): Promise<Retry | undefined>;
}

interface ActiveBatch {
  readonly owner: string;
  readonly source: BatchLines;
  readonly done: PromiseWithResolvers<void>;
  running: number;
  /** Error that ended the batch. */
  failure?: unknown;
}

/**
 * Runs the lines of all batches, at most `capacity` at once and those of one model at a time. Models alternate, so that
 * they do not evict each other from memory with every line.
 */
export class LineScheduler {
  readonly #capacity: number;
  readonly #now: () => number;
  readonly #batches = new Set<ActiveBatch>();
  readonly #rotation = new BatchRotation<ActiveBatch>();
  /** No line is started before this time. */
  #blockedUntil = 0;
  #isRunning = false;
  #wakeUp = Promise.withResolvers<void>();

  /** @param capacity maximum lines at once */
  constructor(capacity: number, now: () => number = Date.now) {
    this.#capacity = capacity;
    this.#now = now;
  }

  /** Runs all lines of a batch; resolves when all are done, or when the signal has aborted and none is running. */
  async run(source: BatchLines): Promise<void> {
    const { owner } = source;
    const batch: ActiveBatch = { owner, source, done: Promise.withResolvers(), running: 0 };
    const onAbort = (): void => this.#remove(batch);
    if (source.signal.aborted) return;
    source.signal.addEventListener("abort", onAbort, { once: true });
    this.#batches.add(batch);
    this.#rotation.add(batch);
    this.#wake();
    if (!this.#isRunning) void this.#runAll();
    try {
      await batch.done.promise;
    } finally {
      source.signal.removeEventListener("abort", onAbort);
    }
  }

  async #runAll(): Promise<void> {
    this.#isRunning = true;
    while (this.#batches.size > 0) {
      const model = await this.#nextModel();
      if (model === undefined) continue;
      await this.#runModel(model);
      await this.#moveServedBack(model);
    }
    this.#isRunning = false;
  }

  /** Moves the batches of a model that has had its turn behind the others. */
  async #moveServedBack(model: string): Promise<void> {
    const served: ActiveBatch[] = [];
    for (const batch of this.#batches) {
      const next = await this.#recordFailure(batch, async () => await batch.source.queue.next(this.#now()));
      if (next?.model === model) served.push(batch);
    }
    for (const batch of served) if (this.#batches.delete(batch)) this.#batches.add(batch);
  }

  /** Returns the model of the batch that has waited longest; undefined after a pause in which no line could run. */
  async #nextModel(): Promise<string | undefined> {
    if (this.#now() < this.#blockedUntil) {
      await this.#pause(this.#blockedUntil - this.#now());
      return undefined;
    }
    let soonest = this.#now() + MAX_SLEEP_MS;
    for (const batch of this.#batches) {
      const next = await this.#recordFailure(batch, async () => await batch.source.queue.next(this.#now()));
      if (!next) {
        this.#remove(batch);
        continue;
      }
      if (next.at <= this.#now()) return next.model;
      soonest = Math.min(soonest, next.at);
    }
    if (this.#batches.size > 0) await this.#pause(soonest - this.#now());
    return undefined;
  }

  /** Runs lines of one model until none are left, or its turn is over and other models wait. */
  async #runModel(model: string): Promise<void> {
    const until = this.#now() + MODEL_TURN_MS;
    let running = 0;
    for (;;) {
      const woken = this.#wakeUp.promise;
      const isOver = this.#now() >= until && (await this.#otherModelWaits(model));
      const limit = isOver || this.#now() < this.#blockedUntil ? 0 : this.#capacity;
      while (running < limit) {
        const taken = await this.#takeLine(model);
        if (!taken) break;
        running += 1;
        void this.#runLine(taken).finally(() => {
          running -= 1;
          this.#wake();
        });
      }
      if (running === 0) return;
      // Promise.race() of the running lines would leave handlers on each of them at every iteration.
      // With free capacity, polling also finds lines whose retry time has come or that other machines released.
      await (running < this.#capacity ? this.#pause(POLL_INTERVAL_MS, woken) : woken);
    }
  }

  async #takeLine(model: string): Promise<{ batch: ActiveBatch; attempt: Attempt } | undefined> {
    for (const batch of this.#rotation.order()) {
      const { queue } = batch.source;
      const attempt = await this.#recordFailure(batch, async () => await queue.take(model, this.#now()));
      if (!attempt) continue;
      if (!this.#batches.has(batch)) {
        // The batch was removed during take(), and run() may have resolved already: its lines must not run now.
        queue.putBack(attempt, this.#now());
        continue;
      }
      this.#rotation.served(batch);
      batch.running += 1;
      return { batch, attempt };
    }
    return undefined;
  }

  async #runLine({ batch, attempt }: { batch: ActiveBatch; attempt: Attempt }): Promise<void> {
    const { source } = batch;
    const retry = await this.#recordFailure(batch, async () => await source.run(attempt));
    batch.running -= 1;
    if (retry) source.queue.putBack(attempt, retry.at);
    if (retry?.blocksAll) this.#blockedUntil = Math.max(this.#blockedUntil, retry.at);
    if (!this.#batches.has(batch)) this.#settle(batch);
  }

  async #otherModelWaits(model: string): Promise<boolean> {
    for (const { source } of this.#batches) {
      const next = await source.queue.next(this.#now()).catch(() => undefined);
      if (next && next.model !== model && next.at <= this.#now()) return true;
    }
    return false;
  }

  /** Removes a batch whose action fails. run() rejects when the batch's running lines have ended. */
  async #recordFailure<Result>(
    batch: ActiveBatch,
    action: () => Promise<Result>,
  ): Promise<Result | undefined> {
    try {
      return await action();
    } catch (error) {
      batch.failure ??= error;
      this.#remove(batch);
      return undefined;
    }
  }

  #remove(batch: ActiveBatch): void {
    this.#batches.delete(batch);
    this.#rotation.delete(batch);
    this.#settle(batch);
    this.#wake();
  }

  #settle({ running, failure, done }: ActiveBatch): void {
    if (running > 0) return;
    if (failure === undefined) done.resolve();
    else done.reject(failure);
  }

  #wake(): void {
    this.#wakeUp.resolve();
    this.#wakeUp = Promise.withResolvers();
  }

  async #pause(millis: number, woken = this.#wakeUp.promise): Promise<void> {
    const timer = setTimeout(() => this.#wake(), Math.max(1, millis)).unref();
    await woken;
    clearTimeout(timer);
  }
}

/** Lines of one batch before another batch of the same model is served; successive lines share prompt prefixes. */
const TURN_LINES = 32;
/** Lines of a new batch that run before those of older batches, and then of older ones before the next new batch. */
const FIRST_TURN_LINES = 8;

interface HasOwner {
  /** Digest of the owner's API key. */
  readonly owner: string;
}

/**
 * Order in which batches are served: a new batch begins at once, however many others there are; then a round robin over
 * owners, and over the batches of each owner.
 */
export class BatchRotation<Batch extends HasOwner> {
  /** Batches by owner; owners and batches that have waited longest come first. */
  readonly #byOwner = new Map<string, Set<Batch>>();
  /** Batches that have had no line yet. */
  readonly #unserved = new Set<Batch>();
  #current: Batch | undefined;
  #turnLines = 0;
  /** True if the current batch is new and was served before others that had waited longer. */
  #hasJumpedQueue = false;

  add(batch: Batch): void {
    const { owner } = batch;
    const ownerBatches = this.#byOwner.get(owner) ?? new Set();
    ownerBatches.add(batch);
    if (ownerBatches.size === 1) this.#byOwner.set(owner, ownerBatches);
    this.#unserved.add(batch);
  }

  delete(batch: Batch): void {
    const ownerBatches = this.#byOwner.get(batch.owner);
    ownerBatches?.delete(batch);
    if (ownerBatches?.size === 0) this.#byOwner.delete(batch.owner);
    this.#unserved.delete(batch);
    if (this.#current === batch) this.#current = undefined;
  }

  /** Returns all batches in the order in which they are to be tried. */
  order(): ReadonlySet<Batch> {
    const newest = [...this.#unserved].toReversed();
    const longest = this.#byWaitTime();
    const others = this.#hasJumpedQueue ? [...longest, ...newest] : [...newest, ...longest];
    const goesOn = this.#current !== undefined && this.#turnLines < this.#maxTurnLines();
    return new Set(goesOn && this.#current ? [this.#current, ...others] : others);
  }

  /** Records that a batch has had a line. */
  served(batch: Batch): void {
    this.#turnLines = batch === this.#current ? this.#turnLines + 1 : 1;
    if (batch === this.#current && this.#turnLines <= this.#maxTurnLines()) return;
    const [longest] = this.#byWaitTime();
    this.#hasJumpedQueue = this.#unserved.delete(batch) && batch !== longest;
    this.#current = batch;
    this.#turnLines = 1;
    const ownerBatches = this.#byOwner.get(batch.owner);
    if (!ownerBatches?.delete(batch)) return;
    ownerBatches.add(batch);
    this.#byOwner.delete(batch.owner);
    this.#byOwner.set(batch.owner, ownerBatches);
  }

  #byWaitTime(): readonly Batch[] {
    return Array.from(this.#byOwner.values(), (ownerBatches) => Array.from(ownerBatches)).flat();
  }

  #maxTurnLines(): number {
    return this.#hasJumpedQueue || this.#unserved.size > 0 ? FIRST_TURN_LINES : TURN_LINES;
  }
}
