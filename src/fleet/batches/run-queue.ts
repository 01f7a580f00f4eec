import type { Attempt, Lines, NextLine } from "../../batches/line-queue.ts";
import type { Answers } from "./answers.ts";
import type { ModelHere } from "./batch-models.ts";
import { isAway } from "../jetstream/jetstream-errors.ts";
import type { LineRun, LineRuns, QueuedBatch } from "./line-runs.ts";

/** Before it is looked again whether lines wait. */
const LOOK_MS = 1000;

/** What another model's turn does not let begin here, another machine may run. */
const UNBEGUN_MS = 5000;

/** Lines of one model that this machine runs. */
export interface RunnableGroup {
  readonly group: number;
  readonly here: ModelHere;
}

export interface RunQueueOptions {
  readonly batch: QueuedBatch;
  readonly runs: LineRuns;
  readonly answers: Answers;
  /** What this machine can run now. */
  readonly runnable: () => readonly RunnableGroup[];
}

interface OpenRun {
  readonly run: LineRun;
  readonly here: ModelHere;
  readonly waiting: Attempt[];
  readonly returned: { readonly attempt: Attempt; readonly at: number }[];
  /** Lines without an answer. */
  left: number;
  /** Lines that are being run. */
  running: number;
  isBegun: boolean;
  isLeft: boolean;
}

/**
 * Lines of a batch of the fleet, for this machine's pool: it takes a run of them when it has nothing else to do, and gives
 * back what it has no room for.
 */
export class RunQueue implements Lines {
  readonly #options: RunQueueOptions;
  readonly #open = new Set<OpenRun>();
  readonly #of = new Map<Attempt, OpenRun>();
  #lookAt = 0;
  /** Whether the line that came back last found no room. */
  #isRefused = false;
  /** The group that comes next. */
  #turn = 0;
  #isClosed = false;

  constructor(options: RunQueueOptions) {
    this.#options = options;
  }

  /** Never undefined: other machines may give lines back, until the batch is over. */
  async next(now: number): Promise<NextLine> {
    for (const { here, waiting, returned } of this.#open) {
      if (waiting.length > 0 || returned.some(({ at }) => at <= now)) return { model: here.alias, at: now };
    }
    const taken = await this.#takeRun(now, () => true);
    if (taken) return { model: taken.here.alias, at: now };
    const times = [...this.#open].flatMap(({ returned }) => returned.map(({ at }) => at));
    return { model: "", at: Math.min(this.#lookAt, ...times) };
  }

  async take(model: string, now: number): Promise<Attempt | undefined> {
    const held = this.#takeHeld(model, now);
    if (held || !(await this.#takeRun(now, ({ here }) => here.alias === model))) return held;
    return this.#takeHeld(model, now);
  }

  giveBack(attempt: Attempt, at: number): void {
    const open = this.#of.get(attempt);
    if (!open) return;
    open.running -= 1;
    this.#isRefused = attempt.refusals > 0;
    if (this.#isRefused) {
      // Another machine may have the room that this one lacks.
      this.#lookAt = Math.max(this.#lookAt, at);
      open.isLeft = true;
    }
    if (!open.isLeft) open.returned.push({ attempt, at });
    this.#settle(open);
  }

  /** How a line has to call its model here, if not as it does. */
  renamed(attempt: Attempt): string | undefined {
    return this.#of.get(attempt)?.here.rename;
  }

  /** A line has its answer. */
  done(attempt: Attempt): void {
    const open = this.#of.get(attempt);
    if (!open) return;
    this.#isRefused = false;
    open.running -= 1;
    open.left -= 1;
    this.#of.delete(attempt);
    this.#settle(open);
  }

  /** Gives back all that has no answer. */
  close(): void {
    this.#isClosed = true;
    for (const { run } of this.#open) run.giveBack();
    this.#open.clear();
    this.#of.clear();
  }

  #takeHeld(model: string, now: number): Attempt | undefined {
    for (const open of this.#open) {
      if (open.here.alias !== model) continue;
      const due = open.returned.findIndex(({ at }) => at <= now);
      const attempt = due >= 0 ? open.returned.splice(due, 1)[0]?.attempt : open.waiting.shift();
      if (!attempt) continue;
      open.running += 1;
      open.isBegun = true;
      return attempt;
    }
    return undefined;
  }

  async #takeRun(now: number, isWanted: (each: RunnableGroup) => boolean): Promise<OpenRun | undefined> {
    if (now < this.#lookAt) return undefined;
    const { batch, runs, runnable } = this.#options;
    const groups = runnable().filter(isWanted);
    try {
      for (let tried = 0; tried < groups.length; tried += 1) {
        this.#turn += 1;
        const next = groups[this.#turn % groups.length];
        const run = next && (await runs.take(batch, next.group));
        const open = run && (await this.#begin(run, next));
        if (open) return open;
      }
    } catch (error) {
      // Lines under way go on while the server is away.
      if (!isAway(error)) throw error;
    }
    this.#lookAt = now + LOOK_MS;
    return undefined;
  }

  async #begin(run: LineRun, { here }: RunnableGroup): Promise<OpenRun | undefined> {
    const { batch, answers } = this.#options;
    // It has come again since the server did not hear of it for a while.
    const isHere = [...this.#open].some((each) => each.run.sequence === run.sequence);
    if (isHere) return (run.leave(), undefined);
    let { lines } = run;
    if (run.wasTaken) {
      try {
        const { answered } = await answers.tally(batch.id);
        lines = lines.filter(({ number }) => !answered.has(number));
      } catch (error) {
        run.giveBack();
        throw error;
      }
    }
    if (this.#isClosed) return (run.giveBack(), undefined);
    if (lines.length === 0) return (run.done(), undefined);
    const waiting = lines.map((place): Attempt => ({
      line: { ...place, customId: "", model: here.alias, order: "" },
      failures: 0,
      refusals: this.#isRefused ? 1 : 0,
    }));
    const open: OpenRun = {
      run,
      here,
      waiting,
      returned: [],
      left: lines.length,
      running: 0,
      isBegun: false,
      isLeft: false,
    };
    this.#open.add(open);
    for (const attempt of waiting) this.#of.set(attempt, open);
    setTimeout(() => {
      if (open.isBegun) return;
      open.isLeft = true;
      this.#settle(open);
    }, UNBEGUN_MS).unref();
    return open;
  }

  #settle(open: OpenRun): void {
    const isAnswered = open.left === 0;
    if (!isAnswered && !(open.isLeft && open.running === 0)) return;
    if (!this.#open.delete(open)) return;
    for (const [attempt, each] of this.#of) if (each === open) this.#of.delete(attempt);
    if (isAnswered) open.run.done();
    else open.run.giveBack();
  }
}
