import { setTimeout as sleep } from "node:timers/promises";
import type { Logger } from "pino";
import { type Batch, type BatchFormat, type RunLine, UNFINISHED } from "../../batches/batch.ts";
import type { LinePool } from "../../batches/line-scheduler.ts";
import { ServiceError } from "../../errors/service-error.ts";
import { isUnreachable } from "../jetstream/jetstream-errors.ts";
import type { BatchModels } from "./batch-models.ts";
import { BatchNotifications, type ReportedRefusals } from "./batch-notices.ts";
import type { LineGroup, SharedBatch } from "./batch-record.ts";
import type { JetStreamStore } from "./jetstream-store.ts";
import { BatchLeader, type LeadOptions } from "./lead-batch.ts";
import type { Leases } from "./leases.ts";
import type { LineRuns } from "./line-runs.ts";
import { type LineRunnerOptions, FleetLineRunner } from "./run-lines.ts";

/** How often batches are looked at when nothing is heard of them. */
const LOOK_MS = 1000;
/**
 * Between two looks at a batch, whatever is heard, times the looks that there were, and at most times the batches: a new one
 * is looked at often, and a busy fleet tells of something all the time.
 */
const NEWS_MS = 10;
/** Between two looks for new batches. */
const NEW_MS = 50;
/** Batches that are looked at as often as one when nothing is heard. */
const OFTEN_LOOKED_AT = 64;
/** Before a batch goes on whose server is away, or that has failed. */
const AWAY_MS = 1000;
const RETRY_MS = 10_000;
/** Failures in a row of a server that does not answer, until the log has one. */
const TOLD_AFTER = 10;
/** A machine that does not know yet that a batch is over may still answer a line; what it says is removed after this. */
const REMAINS_MS = 15_000;
/** A daemon that ends waits so long for what is under way. */
const STOP_MS = 3000;
/** How often it is looked whether lines were lost. */
const LOST_MS = 30_000;

export interface SharedRunnerOptions extends LeadOptions, LineRunnerOptions {
  readonly place: JetStreamStore;
  readonly leases: Leases;
  readonly refusals: ReportedRefusals;
  readonly pool: LinePool;
  readonly formats: Readonly<Record<string, BatchFormat>>;
  readonly runLine: RunLine;
  /** Told when a batch is over that was led from here. */
  readonly onEnd: (batch: Batch) => void;
}

/** This machine's part in all batches of the fleet: it runs lines, and leads those that nobody else leads. */
export class SharedRunner {
  readonly #options: SharedRunnerOptions;
  readonly #leader: BatchLeader;
  readonly #missing: MissingModels;
  readonly #jobs = new Map<string, Promise<void>>();
  readonly #stopping = new AbortController();
  readonly #over: Promise<void>;
  readonly #led = new Set<string>();
  /** When it was last looked whether lines of a batch were lost. */
  readonly #lookedAt = new Map<string, number>();
  /** Since when a batch is over, or not there, as seen from here: clocks of machines differ. */
  readonly #overSince = new Map<string, number>();
  readonly #news = new BatchNotifications();

  constructor(options: SharedRunnerOptions) {
    this.#options = options;
    this.#leader = new BatchLeader(options);
    this.#missing = new MissingModels(options);
    options.place.onNews((batch) => this.#news.heard(batch));
    this.#over = this.#watch();
  }

  /** Batches that are led from here and are not over. */
  get running(): number {
    return this.#led.size;
  }

  /** Follows a batch from now on. */
  take({ id }: Pick<Batch, "id">): void {
    if (this.#jobs.has(id) || this.#stopping.signal.aborted) return;
    this.#jobs.set(
      id,
      this.#follow(id).finally(() => {
        this.#jobs.delete(id);
        this.#news.forget(id);
      }),
    );
  }

  /**
   * Cancels a batch; what is done of it will be in its output.
   * @throws ServiceError batch_conflict for one that is over, or about to be
   */
  async cancel(id: string): Promise<Batch> {
    const { store } = this.#options;
    const change = { status: "cancelling", endsAs: "cancelled" } as const;
    const cancelled = await store.change(id, ["validating", "in_progress"], change);
    const batch = (await store.batch(id, undefined)) ?? cancelled;
    // Whoever leads it may have ended it meanwhile.
    if (batch && (cancelled || batch.status === "cancelling")) return batch;
    throw new ServiceError(
      "batch_conflict",
      `The batch is ${batch?.status ?? "gone"}; it cannot be cancelled now.`,
    );
  }

  /** Why a batch waits, for its users. */
  async waiting(id: string): Promise<string | undefined> {
    const batch = await this.#options.store.recorded(id);
    if (batch?.status !== "in_progress") return undefined;
    return (await this.#missing.reason(batch)) ?? (await this.#options.refusals.reason(id));
  }

  /** Stops running lines and leading: other machines go on. */
  async stop(): Promise<void> {
    this.#stopping.abort();
    this.#news.heard();
    const all = Promise.all([this.#over, ...this.#jobs.values()]);
    // What waits for a server that is silent ends by itself.
    await Promise.race([all, sleep(STOP_MS, undefined, { ref: false })]);
    await this.#options.leases.close();
  }

  /** Never rejects. */
  async #watch(): Promise<void> {
    while (!this.#stopping.signal.aborted) {
      const news = this.#news.ofOthers();
      if ((await this.#options.place.home()) === "fleet") {
        await this.#takeAll().catch(() => undefined);
      }
      await this.#pause(news, LOOK_MS, NEW_MS);
    }
  }

  async #takeAll(): Promise<void> {
    const ids = new Set(await this.#options.leases.ids());
    for (const id of ids) this.take({ id });
    this.#options.answers.forgetAllBut(ids);
    for (const map of [this.#lookedAt, this.#overSince])
      for (const id of map.keys()) if (!ids.has(id)) map.delete(id);
  }

  /** Never rejects. */
  async #follow(id: string): Promise<void> {
    const { logger } = this.#options;
    const lines = new FleetLineRunner(this.#options);
    let failures = 0;
    for (let looks = 1; !this.#stopping.signal.aborted; looks += 1) {
      // What is heard from now on is looked at in the next round.
      const news = this.#news.of(id);
      try {
        if (await this.#look(id, lines)) break;
        failures = 0;
        const jobs = Math.max(1, this.#jobs.size);
        const rounds = Math.ceil(jobs / OFTEN_LOOKED_AT);
        await this.#pause(news, LOOK_MS * rounds, NEWS_MS * Math.min(looks, jobs));
      } catch (error) {
        const wait = isUnreachable(error) ? AWAY_MS : RETRY_MS;
        failures += 1;
        // That the server is away has been told; for a moment after it is back, it may not answer.
        if (!isUnreachable(error) || failures === TOLD_AFTER) {
          const { message } = ServiceError.from(error);
          logger.warn({ batch: id, err: error }, `A batch waits for ${wait / 1000} s: ${message}`);
        }
        await sleep(wait, undefined, { signal: this.#stopping.signal, ref: false }).catch(() => undefined);
      }
    }
    this.#led.delete(id);
    this.#missing.forget(id);
    await lines.stop();
  }

  /** Does what a batch needs now; true when there is nothing left to do. */
  async #look(id: string, lines: FleetLineRunner): Promise<boolean> {
    const { store, leases } = this.#options;
    const batch = await store.recorded(id);
    const isLeading = await leases.hold(id);
    if (batch?.status === "in_progress") lines.run(batch, () => leases.isHeld(id));
    else await lines.stop();
    if (isLeading && batch && UNFINISHED.includes(batch.status)) this.#led.add(id);
    else this.#led.delete(id);
    if (isLeading) return await this.#lead(id, batch);
    // The lease is the last thing that goes.
    return !batch || !UNFINISHED.includes(batch.status);
  }

  async #lead(id: string, batch: SharedBatch | undefined): Promise<boolean> {
    switch (batch?.status) {
      case "validating": {
        const checked = await this.#leader.validate(batch);
        if (checked?.status === "failed") this.#options.onEnd(checked);
        return false;
      }
      case "in_progress":
        await this.#oversee(batch);
        return false;
      case "finalizing":
      case "cancelling": {
        const ended = await this.#leader.finish(batch);
        if (ended) this.#options.onEnd(ended);
        return false;
      }
      default:
        return await this.#clear(id, batch);
    }
  }

  async #oversee(batch: SharedBatch): Promise<void> {
    const { store, now } = this.#options;
    const hasExpired = now() >= batch.expiresAt;
    if (hasExpired || (await this.#leader.isAnswered(batch))) {
      const endsAs = hasExpired ? "expired" : "completed";
      await store.change(batch.id, ["in_progress"], { status: "finalizing", endsAs });
      this.#lookedAt.delete(batch.id);
      return;
    }
    await this.#missing.tell(batch);
    const last = this.#lookedAt.get(batch.id);
    if (last === undefined) this.#lookedAt.set(batch.id, now());
    else if (now() - last >= LOST_MS) {
      this.#lookedAt.set(batch.id, now());
      await this.#leader.requeue(batch, () => this.#options.leases.isHeld(batch.id));
    }
  }

  /** Removes what a batch that is over needs no longer. */
  async #clear(id: string, batch: SharedBatch | undefined): Promise<boolean> {
    const { answers, runs, leases } = this.#options;
    // A lease comes before its batch: one without is left by a machine that was killed in between.
    const since = this.#overSince.get(id) ?? performance.now();
    this.#overSince.set(id, since);
    if (performance.now() - since < REMAINS_MS) return false;
    if (batch) await runs.remove(batch, batch.groups.keys());
    for (const [queue, groups] of await runs.queues(id)) await runs.remove({ id, queue }, groups);
    await answers.remove(id);
    await leases.end(id);
    this.#lookedAt.delete(id);
    this.#overSince.delete(id);
    return true;
  }

  /** Until something is heard, but for at least `leastMs` and at most `mostMs`. */
  async #pause(news: Promise<void>, mostMs: number, leastMs: number): Promise<void> {
    const timer = new AbortController();
    const signal = AbortSignal.any([timer.signal, this.#stopping.signal]);
    const after = async (millis: number): Promise<void> =>
      await sleep(millis, undefined, { signal, ref: false }).catch(() => undefined);
    await Promise.race([after(mostMs), Promise.all([news, after(leastMs)])]);
    timer.abort();
  }
}

interface MissingModelsOptions {
  readonly models: Pick<BatchModels, "isAway">;
  readonly runs: Pick<LineRuns, "groups">;
  readonly logger: Pick<Logger, "warn">;
}

/** Says which batches wait for a machine that has their model. */
export class MissingModels {
  readonly #options: MissingModelsOptions;
  /** Batches whose wait the log has, with the reason. */
  readonly #told = new Map<string, string>();

  constructor(options: MissingModelsOptions) {
    this.#options = options;
  }

  /** Why lines of a batch wait; undefined: all that are left have a machine. */
  async reason(batch: SharedBatch): Promise<string | undefined> {
    const { status, groups } = batch;
    if (status !== "in_progress") return undefined;
    const away = [...groups.entries()].filter(([, group]) => this.#options.models.isAway(group));
    if (away.length === 0) return undefined;
    const left = await this.#options.runs.groups(batch);
    const names = away.filter(([index]) => left.has(index)).map(([, { name }]) => nameOf({ name }));
    return names.length > 0
      ? `waits for a machine that has ${names.join(" and for one that has ")}`
      : undefined;
  }

  /** Tells the log once that a batch waits. */
  async tell(batch: SharedBatch): Promise<void> {
    const reason = await this.reason(batch);
    if (reason === undefined) return this.forget(batch.id);
    if (this.#told.get(batch.id) === reason) return;
    this.#told.set(batch.id, reason);
    this.#options.logger.warn({ batch: batch.id }, `A batch ${reason}`);
  }

  /** The batch is not led from here any longer. */
  forget(batch: string): void {
    this.#told.delete(batch);
  }
}

function nameOf({ name }: Pick<LineGroup, "name">): string {
  return name === "" ? "the default model that it began with" : name;
}
