import { z } from "zod";
import { readJson, writeJson } from "../json-message.ts";
import type { Answers } from "./answers.ts";
import type { JetStreamPlace } from "./jetstream-place.ts";
import { isSharedId } from "./shared-ids.ts";

/** What a machine has told is true for so long: lines that are refused are tried again, and refused again, sooner. */
const TRUE_MS = 45_000;
/** Of a message that anyone on the NATS server may have written. */
const LONGEST_REASON = 1000;
/** Batches that are remembered. */
const MOST_BATCHES = 1000;
const SUBJECT = "batchwaits";

const refusalSchema = z.object({
  batch: z.string().refine(isSharedId),
  reason: z.string().max(LONGEST_REASON),
  /** Lines that were answered by then. */
  answered: z.int().min(0),
});

/** What lines of batches are refused with again and again, as all machines tell it. */
export class ToldRefusals {
  readonly #place: Pick<JetStreamPlace, "tell">;
  readonly #answers: Pick<Answers, "tally">;
  readonly #byBatch = new Map<string, { readonly reason: string; readonly answered: number; at: number }>();

  constructor(place: Pick<JetStreamPlace, "tell" | "listen">, answers: Pick<Answers, "tally">) {
    this.#place = place;
    this.#answers = answers;
    place.listen(SUBJECT, (data) => {
      const told = readJson(refusalSchema, data);
      if (!told) return;
      this.#byBatch.delete(told.batch);
      this.#byBatch.set(told.batch, { ...told, at: performance.now() });
      const [oldest] = this.#byBatch.keys();
      if (this.#byBatch.size > MOST_BATCHES && oldest !== undefined) this.#byBatch.delete(oldest);
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
