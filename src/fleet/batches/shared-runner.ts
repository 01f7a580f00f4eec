import { setTimeout as sleep } from "node:timers/promises";
import type { Logger } from "pino";
import { type Batch, UNFINISHED_STATUSES } from "../../batches/batch.ts";
import type { FileContents } from "../../batches/batch-store.ts";
import type { BatchWorker } from "../../batches/batch-service.ts";
import { ServiceError } from "../../errors/service-error.ts";
import { isUnreachable } from "../jetstream/jetstream-errors.ts";
import type { BatchModels } from "./batch-models.ts";
import { BatchNotifications, type ReportedRefusals } from "./batch-notices.ts";
import type { LineGroup, SharedBatch } from "./batch-record.ts";
import type { JetStreamStore } from "./jetstream-store.ts";
import { BatchLeader, type LeadOptions } from "./lead-batch.ts";
import type { Leases } from "./leases.ts";
import type { LineRuns } from "./line-runs.ts";
import { type FleetRunnerOptions, FleetBatchRunner } from "./run-lines.ts";

/** Interval of checks of a batch without notifications. */
const POLL_INTERVAL_MS = 1000;
/**
 * Minimum interval between two checks of a batch, multiplied by the number of checks so far and limited by the number
 * of batches: a new batch is checked often, while a busy fleet announces changes all the time.
 */
const MIN_CHECK_INTERVAL_MS = 10;
/** Minimum interval between two checks for new batches. */
const NEW_BATCHES_INTERVAL_MS = 50;
/** Number of batches that are checked as often as a single one without notifications. */
const POLLED_BATCHES = 64;
/** Delays before a batch continues whose server is unreachable, or that has failed. */
const UNREACHABLE_DELAY_MS = 1000;
const RETRY_DELAY_MS = 10_000;
/** Consecutive failures of an unreachable server before a warning. */
const FAILURES_BEFORE_WARNING = 10;
/**
 * Delay before the data of a finished batch is removed: a machine that has not noticed the end may still save answers.
 */
const CLEANUP_DELAY_MS = 15_000;
/** Maximum wait for running work when stopping. */
const STOP_TIMEOUT_MS = 3000;
/** Interval of checks for lost lines. */
const LOST_LINES_INTERVAL_MS = 30_000;

interface SharedRunnerOptions extends LeadOptions, FleetRunnerOptions {
  readonly folder: FileContents;
  readonly jetStream: JetStreamStore;
  readonly leases: Leases;
  readonly refusals: ReportedRefusals;
  /** Called when a batch has ended that this machine led. */
  readonly onEnd: (batch: Batch) => void;
}

/** This machine's work on all batches of the fleet: runs lines, and leads batches that no other machine leads. */
export class SharedRunner implements BatchWorker {
  readonly #options: SharedRunnerOptions;
  readonly #leader: BatchLeader;
  readonly #missing: MissingModels;
  readonly #jobs = new Map<string, Promise<void>>();
  readonly #stopping = new AbortController();
  readonly #watching: Promise<void>;
  readonly #led = new Set<string>();
  /** Time of the last check for lost lines, by batch. */
  readonly #lostLinesCheckedAt = new Map<string, number>();
  /** Time since which a batch is known to be finished or missing, measured here since clocks of machines differ. */
  readonly #overSince = new Map<string, number>();
  readonly #notifications = new BatchNotifications();

  constructor(options: SharedRunnerOptions) {
    this.#options = options;
    this.#leader = new BatchLeader(options);
    this.#missing = new MissingModels(options);
    options.jetStream.onBatchChange((batch) => this.#notifications.notify(batch));
    this.#watching = this.#watch();
  }

  /** Number of unfinished batches that this machine leads. */
  get running(): number {
    return this.#led.size;
  }

  /** Works on a batch from now on. */
  start({ id }: Pick<Batch, "id">): void {
    if (this.#jobs.has(id) || this.#stopping.signal.aborted) return;
    this.#jobs.set(
      id,
      this.#follow(id).finally(() => {
        this.#jobs.delete(id);
        this.#notifications.forget(id);
      }),
    );
  }

  /** Does nothing: every machine sees the change of the batch. */
  cancelled(): void {}

  /** Returns why a batch waits, for clients; undefined if it does not. */
  async waitingReason(id: string): Promise<string | undefined> {
    const batch = await this.#options.store.recorded(id);
    if (batch?.status !== "in_progress") return undefined;
    return (await this.#missing.reason(batch)) ?? (await this.#options.refusals.reason(id));
  }

  /** Stops running lines and leading, which other machines take over. */
  async stop(): Promise<void> {
    this.#stopping.abort();
    this.#notifications.notify();
    const all = Promise.all([this.#watching, ...this.#jobs.values()]);
    // Requests to a silent server end by themselves.
    await Promise.race([all, sleep(STOP_TIMEOUT_MS, undefined, { ref: false })]);
    await this.#options.leases.close();
  }

  /** Never rejects. */
  async #watch(): Promise<void> {
    while (!this.#stopping.signal.aborted) {
      const notification = this.#notifications.nextOther();
      if ((await this.#options.jetStream.primaryStore()) === "fleet") {
        await this.#startAll().catch(() => undefined);
      }
      await this.#pause(notification, POLL_INTERVAL_MS, NEW_BATCHES_INTERVAL_MS);
    }
  }

  async #startAll(): Promise<void> {
    const ids = new Set(await this.#options.leases.ids());
    for (const id of ids) this.start({ id });
    this.#options.answers.forgetAllExcept(ids);
    for (const map of [this.#lostLinesCheckedAt, this.#overSince])
      for (const id of map.keys()) if (!ids.has(id)) map.delete(id);
  }

  /** Never rejects. */
  async #follow(id: string): Promise<void> {
    const { logger } = this.#options;
    const lines = new FleetBatchRunner(this.#options);
    let failures = 0;
    for (let checks = 1; !this.#stopping.signal.aborted; checks += 1) {
      // Created before the check, so that changes during the check trigger another one.
      const notification = this.#notifications.next(id);
      try {
        if (await this.#check(id, lines)) break;
        failures = 0;
        const jobs = Math.max(1, this.#jobs.size);
        const rounds = Math.ceil(jobs / POLLED_BATCHES);
        await this.#pause(
          notification,
          POLL_INTERVAL_MS * rounds,
          MIN_CHECK_INTERVAL_MS * Math.min(checks, jobs),
        );
      } catch (error) {
        const wait = isUnreachable(error) ? UNREACHABLE_DELAY_MS : RETRY_DELAY_MS;
        failures += 1;
        // The unreachable server is logged already; right after its return it may not answer yet.
        if (!isUnreachable(error) || failures === FAILURES_BEFORE_WARNING) {
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

  /** Does what a batch needs now; returns true if nothing is left to do. */
  async #check(id: string, lines: FleetBatchRunner): Promise<boolean> {
    const { store, leases } = this.#options;
    const batch = await store.recorded(id);
    const isLeading = await leases.acquire(id);
    if (batch?.status === "in_progress") lines.run(batch, () => leases.isHeld(id));
    else await lines.stop();
    if (isLeading && batch && UNFINISHED_STATUSES.includes(batch.status)) this.#led.add(id);
    else this.#led.delete(id);
    if (isLeading) return await this.#lead(id, batch);
    // The lease is removed last.
    return !batch || !UNFINISHED_STATUSES.includes(batch.status);
  }

  async #lead(id: string, batch: SharedBatch | undefined): Promise<boolean> {
    switch (batch?.status) {
      case "validating": {
        const checked = await this.#leader.validate(batch);
        if (checked?.status === "failed") this.#options.onEnd(checked);
        return false;
      }
      case "in_progress":
        await this.#checkProgress(batch);
        return false;
      case "finalizing":
      case "cancelling": {
        const ended = await this.#leader.finish(batch);
        if (ended) this.#options.onEnd(ended);
        return false;
      }
      default:
        return await this.#cleanUp(id, batch);
    }
  }

  async #checkProgress(batch: SharedBatch): Promise<void> {
    const { store, now } = this.#options;
    const hasExpired = now() >= batch.expiresAt;
    if (hasExpired || (await this.#leader.isAnswered(batch))) {
      const endsAs = hasExpired ? "expired" : "completed";
      await store.change(batch.id, ["in_progress"], { status: "finalizing", endsAs });
      this.#lostLinesCheckedAt.delete(batch.id);
      return;
    }
    await this.#missing.logOnce(batch);
    const last = this.#lostLinesCheckedAt.get(batch.id);
    if (last === undefined) this.#lostLinesCheckedAt.set(batch.id, now());
    else if (now() - last >= LOST_LINES_INTERVAL_MS) {
      this.#lostLinesCheckedAt.set(batch.id, now());
      await this.#leader.requeue(batch, () => this.#options.leases.isHeld(batch.id));
    }
  }

  /** Removes what a finished batch no longer needs. */
  async #cleanUp(id: string, batch: SharedBatch | undefined): Promise<boolean> {
    const { answers, runs, leases } = this.#options;
    // Leases are created before batches: one without a batch was left by a machine that was killed in between.
    const since = this.#overSince.get(id) ?? performance.now();
    this.#overSince.set(id, since);
    if (performance.now() - since < CLEANUP_DELAY_MS) return false;
    if (batch) await runs.remove(batch, batch.groups.keys());
    for (const [queue, groups] of await runs.queues(id)) await runs.remove({ id, queue }, groups);
    await answers.remove(id);
    await leases.remove(id);
    this.#lostLinesCheckedAt.delete(id);
    this.#overSince.delete(id);
    return true;
  }

  /** Waits for a notification, but at least `minMs` and at most `maxMs`. */
  async #pause(notification: Promise<void>, maxMs: number, minMs: number): Promise<void> {
    const timer = new AbortController();
    const signal = AbortSignal.any([timer.signal, this.#stopping.signal]);
    const after = async (millis: number): Promise<void> =>
      await sleep(millis, undefined, { signal, ref: false }).catch(() => undefined);
    await Promise.race([after(maxMs), Promise.all([notification, after(minMs)])]);
    timer.abort();
  }
}

interface MissingModelsOptions {
  readonly models: Pick<BatchModels, "isMissing">;
  readonly runs: Pick<LineRuns, "groups">;
  readonly logger: Pick<Logger, "warn">;
}

/** Finds batches that wait for a machine with their model. */
export class MissingModels {
  readonly #options: MissingModelsOptions;
  /** Logged reasons by batch. */
  readonly #logged = new Map<string, string>();

  constructor(options: MissingModelsOptions) {
    this.#options = options;
  }

  /** Returns why lines of a batch wait; undefined if all remaining ones have a machine. */
  async reason(batch: SharedBatch): Promise<string | undefined> {
    const { status, groups } = batch;
    if (status !== "in_progress") return undefined;
    const missing = [...groups.entries()].filter(([, group]) => this.#options.models.isMissing(group));
    if (missing.length === 0) return undefined;
    const left = await this.#options.runs.groups(batch);
    const names = missing.filter(([index]) => left.has(index)).map(([, { name }]) => modelText({ name }));
    return names.length > 0
      ? `waits for a machine that has ${names.join(" and for one that has ")}`
      : undefined;
  }

  /** Logs once that a batch waits. */
  async logOnce(batch: SharedBatch): Promise<void> {
    const reason = await this.reason(batch);
    if (reason === undefined) return this.forget(batch.id);
    if (this.#logged.get(batch.id) === reason) return;
    this.#logged.set(batch.id, reason);
    this.#options.logger.warn({ batch: batch.id }, `A batch ${reason}`);
  }

  /** Drops the logged reason of a batch that this machine no longer leads. */
  forget(batch: string): void {
    this.#logged.delete(batch);
  }
}

function modelText({ name }: Pick<LineGroup, "name">): string {
  return name === "" ? "the default model that it began with" : name;
}
