import { promisify } from "node:util";
import { gunzip, gzip } from "node:zlib";
import { headers } from "@nats-io/transport-node";
import { z } from "zod";
import type { BatchUsage, LineCounts, LineOutcome, RouteAnswer, RunOutcome } from "../../batches/batch.ts";
import { readJson, writeJson } from "../wire-format.ts";
import type { JetStreamStore } from "./jetstream-store.ts";

const pack = promisify(gzip);
const unpack = promisify(gunzip);

/** A longer answer is in parts of this size. */
const PART_BYTES = 128 * 1024;
/** Of an answer that is unpacked, whoever has written it. */
const MAX_BYTES = 256 * 1024 * 1024;
const MAX_PARTS = 4096;
const HEADER = "Daybreak-Answer";

const outcomeSchema = z.tuple([
  z.enum(["succeeded", "errored"]),
  z.coerce.number().min(0),
  z.coerce.number().min(0),
  z.coerce.number().min(0),
  z.coerce.number().min(0),
]);
const answerSchema = z.object({
  status: z.number(),
  requestId: z.string(),
  body: z.string().optional(),
  /** Where its parts are. */
  parts: z
    .object({ nonce: z.string().regex(/^[0-9a-f]+$/), count: z.int().min(0).max(MAX_PARTS) })
    .optional(),
});

/** What is answered of a batch. */
interface Tally {
  readonly answered: ReadonlyMap<number, RunOutcome>;
  readonly counts: LineCounts;
  readonly usage: BatchUsage;
}

class OpenTally implements Tally {
  readonly answered = new Map<number, RunOutcome>();
  readonly counts: Record<LineOutcome, number> = { succeeded: 0, errored: 0, cancelled: 0, expired: 0 };
  usage: BatchUsage = { inputTokens: 0, cachedTokens: 0, outputTokens: 0, reasoningTokens: 0 };
  /** Of the message that was read last. */
  seq = 0;
  reading: Promise<void> = Promise.resolve();

  add(number: number, header: string): void {
    const { data } = outcomeSchema.safeParse(header.split(" "));
    if (!data || this.answered.has(number)) return;
    const [outcome, input, cached, output, reasoning] = data;
    const { inputTokens, cachedTokens, outputTokens, reasoningTokens } = this.usage;
    this.answered.set(number, outcome);
    this.counts[outcome] += 1;
    this.usage = {
      inputTokens: inputTokens + input,
      cachedTokens: cachedTokens + cached,
      outputTokens: outputTokens + output,
      reasoningTokens: reasoningTokens + reasoning,
    };
  }
}

/**
 * Answers to lines, each under a subject of its own, where the server takes only the first. What is answered is counted from
 * them, so that it is right whoever was killed.
 */
export class Answers {
  readonly #place: JetStreamStore;
  readonly #tallies = new Map<string, OpenTally>();

  constructor(place: JetStreamStore) {
    this.#place = place;
    // A server that comes back after a power failure may have forgotten the last ones.
    place.onChange(() => this.#tallies.clear());
  }

  /** Saves an answer; false, and nothing happens, if the line has one already. */
  async save(
    batch: string,
    number: number,
    outcome: RunOutcome,
    { body, ...answer }: RouteAnswer,
    { inputTokens, cachedTokens, outputTokens, reasoningTokens }: BatchUsage,
  ): Promise<boolean> {
    const whole = await pack(writeJson({ ...answer, body }));
    const data =
      whole.byteLength <= PART_BYTES
        ? whole
        : await pack(writeJson({ ...answer, parts: await this.#saveParts(batch, await pack(body)) }));
    const header = headers();
    const figures = [outcome, inputTokens, cachedTokens, outputTokens, reasoningTokens];
    header.set(HEADER, figures.join(" "));
    const subject = this.#subject("answer", batch, String(number));
    if ((await this.#place.put(subject, data, 0, header)) !== undefined) return true;
    // An acknowledgement may have been lost.
    const first = await this.#read(batch, number);
    return first?.requestId === answer.requestId;
  }

  /** The answer to a line; undefined if there is none, or none that can be read. */
  async get(batch: string, number: number): Promise<RouteAnswer | undefined> {
    const found = await this.#read(batch, number);
    if (!found) return undefined;
    const { status, requestId, parts } = found;
    const body = found.body ?? (await this.#readParts(batch, parts));
    return body === undefined ? undefined : { status, requestId, body };
  }

  /** Removes answers that nobody can use, so that their lines are run again. */
  async discard(batch: string, numbers: readonly number[]): Promise<void> {
    for (const number of numbers)
      await this.#place.purge("batchdata", this.#subject("answer", batch, String(number)));
    this.#tallies.delete(batch);
  }

  /** Counts what is answered by now. */
  async tally(batch: string): Promise<Tally> {
    const tally = this.#tallies.get(batch) ?? new OpenTally();
    this.#tallies.set(batch, tally);
    const reading = tally.reading.catch(() => undefined).then(async () => await this.#catchUp(batch, tally));
    tally.reading = reading;
    await reading;
    return tally;
  }

  /** Forgets what was counted of all other batches, which are over. */
  forgetAllBut(open: ReadonlySet<string>): void {
    for (const batch of this.#tallies.keys()) if (!open.has(batch)) this.#tallies.delete(batch);
  }

  /** Removes all answers of a batch. */
  async remove(batch: string): Promise<void> {
    this.#tallies.delete(batch);
    await this.#place.purge("batchdata", this.#subject("answer", batch, "*"));
    await this.#place.purge("batchdata", this.#subject("part", batch, ">"));
  }

  /** Batches that have answers, or parts of them. */
  async batches(): Promise<ReadonlySet<string>> {
    const answers = await this.#place.subjects("batchdata", this.#subject("answer", "*", "*"));
    const parts = await this.#place.subjects("batchdata", this.#subject("part", "*", "*", "*"));
    return new Set([
      ...answers.map((subject) => subject.split(".").at(-2) ?? ""),
      ...parts.map((subject) => subject.split(".").at(-3) ?? ""),
    ]);
  }

  async #read(batch: string, number: number): Promise<z.output<typeof answerSchema> | undefined> {
    const stored = await this.#place.get("batchdata", this.#subject("answer", batch, String(number)));
    const whole = stored && (await unpacked(stored.data));
    return whole && readJson(answerSchema, whole);
  }

  async #saveParts(batch: string, whole: Uint8Array): Promise<{ nonce: string; count: number }> {
    const nonce = crypto.randomUUID().replaceAll("-", "");
    const count = Math.ceil(whole.byteLength / PART_BYTES);
    try {
      for (let at = 0; at < count; at += 1) {
        const part = whole.subarray(at * PART_BYTES, (at + 1) * PART_BYTES);
        await this.#place.put(this.#subject("part", batch, nonce, String(at)), part);
      }
    } catch (error) {
      // The answer is saved again, and what is there already would take the room.
      await this.#place.purge("batchdata", this.#subject("part", batch, nonce, "*")).catch(() => undefined);
      throw error;
    }
    return { nonce, count };
  }

  async #readParts(
    batch: string,
    parts: { nonce: string; count: number } | undefined,
  ): Promise<string | undefined> {
    const read: Uint8Array[] = [];
    for (let at = 0; at < (parts?.count ?? 0); at += 1) {
      const part = await this.#place.get(
        "batchdata",
        this.#subject("part", batch, parts?.nonce ?? "", String(at)),
      );
      if (!part) return undefined;
      read.push(part.data);
    }
    return (await unpacked(Buffer.concat(read)))?.toString("utf8");
  }

  async #catchUp(batch: string, tally: OpenTally): Promise<void> {
    const filter = this.#subject("answer", batch, "*");
    const options = { from: tally.seq + 1, headersOnly: true };
    await this.#place.readAll("batchdata", filter, options, ({ subject, headers: found, seq }) => {
      tally.add(Number(subject.split(".").at(-1)), found?.get(HEADER) ?? "");
      tally.seq = Math.max(tally.seq, seq);
    });
  }

  #subject(kind: "answer" | "part", ...parts: readonly string[]): string {
    return this.#place.subject("batchdata", kind, ...parts);
  }
}

/** Undefined for what is not packed, or too long: anyone on the NATS server may have written it. */
async function unpacked(data: Uint8Array): Promise<Buffer | undefined> {
  return await unpack(data, { maxOutputLength: MAX_BYTES }).catch(() => undefined);
}
