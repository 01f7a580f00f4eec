import type { Attempt, Lines } from "./line-queue.ts";

/** How long one model has its turn while others wait: loading one takes seconds. */
const TURN_MS = 5 * 60_000;
/** How often it is looked for further lines while some run. */
const LOOK_MS = 1000;
/** How long the pool sleeps at most. */
const MAX_SLEEP_MS = 60_000;

/** A line is to be tried again. */
export interface Retry {
  /** Unix milliseconds. */
  readonly at: number;
  /** What it lacked, such as memory for its model, all lines lack: none is run before. */
  readonly holdsUpAll: boolean;
}

/** A batch whose lines are run. */
export interface LineSource {
  /** Whose batch it is: owners take turns. */
  readonly owner: string;
  readonly queue: Lines;
  /** Aborts when no more of its lines are to be run. */
  readonly signal: AbortSignal;
  /** Runs a line; undefined: it is done. */
  run(attempt: Attempt): Promise<Retry | undefined>;
}

interface Member {
  readonly owner: string;
  readonly source: LineSource;
  readonly done: PromiseWithResolvers<void>;
  running: number;
  /** Why it is out. */
  failure?: unknown;
}

/**
 * Runs the lines of all batches, so many at once, those of one model at a time: models take turns, so that they do not push
 * each other out of memory with every line.
 */
export class LinePool {
  readonly #capacity: number;
  readonly #now: () => number;
  readonly #members = new Set<Member>();
  readonly #turns = new LineTurns<Member>();
  /** No line is begun before. */
  #heldUpUntil = 0;
  #isAtWork = false;
  #wakeUp = Promise.withResolvers<void>();

  /** @param capacity lines at once */
  constructor(capacity: number, now: () => number = Date.now) {
    this.#capacity = capacity;
    this.#now = now;
  }

  /** Runs all lines of a batch; resolves when all are done, or the signal has aborted and none is running. */
  async run(source: LineSource): Promise<void> {
    const { owner } = source;
    const member: Member = { owner, source, done: Promise.withResolvers(), running: 0 };
    const onAbort = (): void => this.#leave(member);
    if (source.signal.aborted) return;
    source.signal.addEventListener("abort", onAbort, { once: true });
    this.#members.add(member);
    this.#turns.add(member);
    this.#wake();
    if (!this.#isAtWork) void this.#work();
    try {
      await member.done.promise;
    } finally {
      source.signal.removeEventListener("abort", onAbort);
    }
  }

  async #work(): Promise<void> {
    this.#isAtWork = true;
    while (this.#members.size > 0) {
      const model = await this.#nextModel();
      if (model === undefined) continue;
      await this.#turn(model);
      await this.#moveBack(model);
    }
    this.#isAtWork = false;
  }

  /** Those that have had their turn wait behind the others. */
  async #moveBack(model: string): Promise<void> {
    const served: Member[] = [];
    for (const member of this.#members) {
      const next = await this.#guarded(member, async () => await member.source.queue.next(this.#now()));
      if (next?.model === model) served.push(member);
    }
    for (const member of served) if (this.#members.delete(member)) this.#members.add(member);
  }

  /** The model whose turn it is, of the batch that has waited longest; undefined after a pause in which none could run. */
  async #nextModel(): Promise<string | undefined> {
    if (this.#now() < this.#heldUpUntil) {
      await this.#pause(this.#heldUpUntil - this.#now());
      return undefined;
    }
    let soonest = this.#now() + MAX_SLEEP_MS;
    for (const member of this.#members) {
      const next = await this.#guarded(member, async () => await member.source.queue.next(this.#now()));
      if (!next) {
        this.#leave(member);
        continue;
      }
      if (next.at <= this.#now()) return next.model;
      soonest = Math.min(soonest, next.at);
    }
    if (this.#members.size > 0) await this.#pause(soonest - this.#now());
    return undefined;
  }

  /** Runs lines of one model until there are none, or others have waited long enough. */
  async #turn(model: string): Promise<void> {
    const until = this.#now() + TURN_MS;
    let running = 0;
    for (;;) {
      const woken = this.#wakeUp.promise;
      const isOver = this.#now() >= until && (await this.#othersWait(model));
      const most = isOver || this.#now() < this.#heldUpUntil ? 0 : this.#capacity;
      while (running < most) {
        const taken = await this.#take(model);
        if (!taken) break;
        running += 1;
        void this.#runLine(taken).finally(() => {
          running -= 1;
          this.#wake();
        });
      }
      if (running === 0) return;
      // Not a race of those that run with this: it would be told of each line, and keep them all until it settles.
      // While there is room, lines may come back whose time has not come yet, or that other machines leave.
      await (running < this.#capacity ? this.#pause(LOOK_MS, woken) : woken);
    }
  }

  async #take(model: string): Promise<{ member: Member; attempt: Attempt } | undefined> {
    for (const member of this.#turns.order()) {
      const { queue } = member.source;
      const attempt = await this.#guarded(member, async () => await queue.take(model, this.#now()));
      if (!attempt) continue;
      if (!this.#members.has(member)) {
        // It has left meanwhile, and its owner may have been told that none of its lines is running.
        queue.giveBack(attempt, this.#now());
        continue;
      }
      this.#turns.took(member);
      member.running += 1;
      return { member, attempt };
    }
    return undefined;
  }

  async #runLine({ member, attempt }: { member: Member; attempt: Attempt }): Promise<void> {
    const { source } = member;
    const again = await this.#guarded(member, async () => await source.run(attempt));
    member.running -= 1;
    if (again) source.queue.giveBack(attempt, again.at);
    if (again?.holdsUpAll) this.#heldUpUntil = Math.max(this.#heldUpUntil, again.at);
    if (!this.#members.has(member)) this.#settle(member);
  }

  async #othersWait(model: string): Promise<boolean> {
    for (const { source } of this.#members) {
      const next = await source.queue.next(this.#now()).catch(() => undefined);
      if (next && next.model !== model && next.at <= this.#now()) return true;
    }
    return false;
  }

  /** A batch whose store fails is out; its owner hears of it when its lines under way have ended, which are still its own. */
  async #guarded<Result>(member: Member, action: () => Promise<Result>): Promise<Result | undefined> {
    try {
      return await action();
    } catch (error) {
      member.failure ??= error;
      this.#leave(member);
      return undefined;
    }
  }

  #leave(member: Member): void {
    this.#members.delete(member);
    this.#turns.delete(member);
    this.#settle(member);
    this.#wake();
  }

  #settle({ running, failure, done }: Member): void {
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
