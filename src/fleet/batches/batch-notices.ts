import { z } from "zod";
import { readJson, writeJson } from "../wire-format.ts";
import type { AnswerStore } from "./answer-store.ts";
import { isSharedId } from "./batch-record.ts";
import type { JetStreamStore } from "./jetstream-store.ts";

/**
 * Promises that resolve with the next change notification. Each new promise replaces the one before, which then never
 * resolves, so that it cannot retain its waiters.
 */
export class BatchNotifications {
  readonly #byBatch = new Map<string, PromiseWithResolvers<void>>();
  #others = Promise.withResolvers<void>();

  /** Resolves when a batch may have changed. */
  next(batch: string): Promise<void> {
    const notification = Promise.withResolvers<void>();
    this.#byBatch.set(batch, notification);
    return notification.promise;
  }

  /** Resolves when a batch may have changed for which nobody waits. */
  nextOther(): Promise<void> {
    this.#others = Promise.withResolvers();
    return this.#others.promise;
  }

  /** @param batch undefined if any batch may have changed */
  notify(batch?: string): void {
    const ids = batch === undefined ? [...this.#byBatch.keys()] : [batch];
    const waiting = ids.filter((id) => this.#byBatch.has(id));
    for (const id of waiting) this.#byBatch.get(id)?.resolve();
    if (batch === undefined || waiting.length === 0) this.#others.resolve();
  }

  /** Drops the promise of a batch. */
  forget(batch: string): void {
    this.#byBatch.delete(batch);
  }
}

/** Lifetime of a reported refusal; refused lines are retried, and refused again, sooner. */
const REFUSAL_TTL_MS = 45_000;
/** Maximum length of a reason, which any NATS client may have written. */
const MAX_REASON_CHARACTERS = 1000;
/** Maximum number of remembered batches. */
const MAX_BATCHES = 1000;
const SUBJECT = "batchwaits";

const refusalSchema = z.object({
  batch: z.string().refine(isSharedId),
  reason: z.string().max(MAX_REASON_CHARACTERS),
  /** Number of answered lines at the time of the report. */
  answered: z.int().min(0),
});

/** Reasons of repeated refusals, as reported by all machines. */
export class ReportedRefusals {
  readonly #jetStream: Pick<JetStreamStore, "broadcast">;
  readonly #answers: Pick<AnswerStore, "tally">;
  readonly #byBatch = new Map<string, { readonly reason: string; readonly answered: number; at: number }>();

  constructor(jetStream: Pick<JetStreamStore, "broadcast" | "listen">, answers: Pick<AnswerStore, "tally">) {
    this.#jetStream = jetStream;
    this.#answers = answers;
    jetStream.listen(SUBJECT, (data) => {
      const report = readJson(refusalSchema, data);
      if (!report) return;
      this.#byBatch.delete(report.batch);
      this.#byBatch.set(report.batch, { ...report, at: performance.now() });
      const [oldest] = this.#byBatch.keys();
      if (this.#byBatch.size > MAX_BATCHES && oldest !== undefined) this.#byBatch.delete(oldest);
    });
  }

  /** Reports to all machines why lines of a batch are refused here. */
  async report(batch: string, reason: string): Promise<void> {
    const { answered } = await this.#answers.tally(batch);
    const report = { batch, reason: reason.slice(0, MAX_REASON_CHARACTERS), answered: answered.size };
    this.#jetStream.broadcast(SUBJECT, writeJson(report));
  }

  /** Returns why lines of a batch are refused; undefined if none was lately, or if one has been answered since. */
  async reason(batch: string): Promise<string | undefined> {
    const refusal = this.#byBatch.get(batch);
    if (!refusal || performance.now() - refusal.at > REFUSAL_TTL_MS) return undefined;
    const { answered } = await this.#answers.tally(batch);
    return answered.size > refusal.answered ? undefined : refusal.reason;
  }
}
