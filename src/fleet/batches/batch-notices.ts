import { z } from "zod";
import { readJson, writeJson } from "../wire-format.ts";
import type { Answers } from "./answer-store.ts";
import { isSharedId } from "./batch-record.ts";
import type { JetStreamStore } from "./jetstream-store.ts";

/**
 * What is heard of batches: promises that resolve with the next news. Each takes the place of the one before, which never
 * resolves: it would keep everything that has waited for it until there are news.
 */
export class BatchNotifications {
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

/** What a machine has told is true for so long: lines that are refused are tried again, and refused again, sooner. */
const TRUE_MS = 45_000;
/** Of a message that anyone on the NATS server may have written. */
const LONGEST_REASON = 1000;
/** Batches that are remembered. */
const MAX_BATCHES = 1000;
const SUBJECT = "batchwaits";

const refusalSchema = z.object({
  batch: z.string().refine(isSharedId),
  reason: z.string().max(LONGEST_REASON),
  /** Lines that were answered by then. */
  answered: z.int().min(0),
});

/** What lines of batches are refused with again and again, as all machines tell it. */
export class ReportedRefusals {
  readonly #place: Pick<JetStreamStore, "tell">;
  readonly #answers: Pick<Answers, "tally">;
  readonly #byBatch = new Map<string, { readonly reason: string; readonly answered: number; at: number }>();

  constructor(place: Pick<JetStreamStore, "tell" | "listen">, answers: Pick<Answers, "tally">) {
    this.#place = place;
    this.#answers = answers;
    place.listen(SUBJECT, (data) => {
      const told = readJson(refusalSchema, data);
      if (!told) return;
      this.#byBatch.delete(told.batch);
      this.#byBatch.set(told.batch, { ...told, at: performance.now() });
      const [oldest] = this.#byBatch.keys();
      if (this.#byBatch.size > MAX_BATCHES && oldest !== undefined) this.#byBatch.delete(oldest);
    });
  }

  /** Tells all machines what lines of a batch are refused with here. */
  async tell(batch: string, reason: string): Promise<void> {
    const { answered } = await this.#answers.tally(batch);
    const told = { batch, reason: reason.slice(0, LONGEST_REASON), answered: answered.size };
    this.#place.tell(SUBJECT, writeJson(told));
  }

  /** Why lines of a batch are refused; undefined when none was lately, or one was answered since. */
  async reason(batch: string): Promise<string | undefined> {
    const refusal = this.#byBatch.get(batch);
    if (!refusal || performance.now() - refusal.at > TRUE_MS) return undefined;
    const { answered } = await this.#answers.tally(batch);
    return answered.size > refusal.answered ? undefined : refusal.reason;
  }
}
