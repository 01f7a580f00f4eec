import { promisify } from "node:util";
import { gunzip, gzip } from "node:zlib";
import { headers } from "@nats-io/transport-node";
import { z } from "zod";
import {
  type BatchUsage,
  type LineCounts,
  type LineOutcome,
  NO_USAGE,
  type RouteAnswer,
  type RunOutcome,
} from "../../batches/batch.ts";
import { readJson, splitBytes, writeJson } from "../wire-format.ts";
import type { JetStreamStore } from "./jetstream-store.ts";

const compress = promisify(gzip);
const decompress = promisify(gunzip);

/** Longer answers are stored in parts of this size. */
const PART_BYTES = 128 * 1024;
/** Maximum bytes of a decompressed answer, which any NATS client may have written. */
const MAX_ANSWER_BYTES = 256 * 1024 * 1024;
const MAX_PARTS = 4096;
const OUTCOME_HEADER = "Daybreak-Answer";

const figure = z.coerce.number().min(0);
const outcomeSchema = z.tuple([z.enum(["succeeded", "errored"]), figure, figure, figure, figure]);
const answerSchema = z.object({
  status: z.number(),
  requestId: z.string(),
  body: z.string().optional(),
  /** Location of the parts of a long answer. */
  parts: z
    .object({ nonce: z.string().regex(/^[0-9a-f]+$/), count: z.int().min(0).max(MAX_PARTS) })
    .optional(),
});

/** Answered lines of a batch. */
interface Tally {
  readonly answered: ReadonlyMap<number, RunOutcome>;
  readonly counts: LineCounts;
  readonly usage: BatchUsage;
}

class OpenTally implements Tally {
  readonly answered = new Map<number, RunOutcome>();
  readonly counts: Record<LineOutcome, number> = { succeeded: 0, errored: 0, cancelled: 0, expired: 0 };
  usage = NO_USAGE;
  /** Sequence number of the last message read. */
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
 * Answers to lines, each under its own subject, of which the server accepts only the first message. The counts are
 * computed from these messages, so they are right whichever machine was killed.
 */
export class AnswerStore {
  readonly #jetStream: JetStreamStore;
  readonly #tallies = new Map<string, OpenTally>();

  constructor(jetStream: JetStreamStore) {
    this.#jetStream = jetStream;
    // After a power failure the server may have lost the last messages.
    jetStream.onChange(() => this.#tallies.clear());
  }

  /** Saves an answer; returns false and changes nothing if the line has one already. */
  async add(
    batch: string,
    number: number,
    outcome: RunOutcome,
    { body, ...answer }: RouteAnswer,
    { inputTokens, cachedTokens, outputTokens, reasoningTokens }: BatchUsage,
  ): Promise<boolean> {
    const compressed = await compress(writeJson({ ...answer, body }));
    const data =
      compressed.byteLength <= PART_BYTES
        ? compressed
        : await compress(writeJson({ ...answer, parts: await this.#saveParts(batch, await compress(body)) }));
    const header = headers();
    const figures = [outcome, inputTokens, cachedTokens, outputTokens, reasoningTokens];
    header.set(OUTCOME_HEADER, figures.join(" "));
    const subject = this.#subject("answer", batch, String(number));
    if ((await this.#jetStream.put(subject, data, 0, header)) !== undefined) return true;
    // The acknowledgment of this very answer may have been lost.
    const first = await this.#read(batch, number);
    return first?.requestId === answer.requestId;
  }

  /** Returns the answer to a line; undefined if there is none that can be read. */
  async get(batch: string, number: number): Promise<RouteAnswer | undefined> {
    const found = await this.#read(batch, number);
    if (!found) return undefined;
    const { status, requestId, parts } = found;
    const body = found.body ?? (parts && (await this.#readParts(batch, parts)));
    return body === undefined ? undefined : { status, requestId, body };
  }

  /** Removes unusable answers, so that their lines are run again. */
  async discard(batch: string, numbers: readonly number[]): Promise<void> {
    for (const number of numbers)
      await this.#jetStream.purge("batchdata", this.#subject("answer", batch, String(number)));
    this.#tallies.delete(batch);
  }

  /** Counts the current answers. */
  async tally(batch: string): Promise<Tally> {
    const tally = this.#tallies.get(batch) ?? new OpenTally();
    this.#tallies.set(batch, tally);
    const reading = tally.reading
      .catch(() => undefined)
      .then(async () => await this.#readNewAnswers(batch, tally));
    tally.reading = reading;
    await reading;
    return tally;
  }

  /** Drops the counts of all other batches, which are finished. */
  forgetAllExcept(open: ReadonlySet<string>): void {
    for (const batch of this.#tallies.keys()) if (!open.has(batch)) this.#tallies.delete(batch);
  }

  /** Removes all answers of a batch. */
  async remove(batch: string): Promise<void> {
    this.#tallies.delete(batch);
    await this.#jetStream.purge("batchdata", this.#subject("answer", batch, "*"));
    await this.#jetStream.purge("batchdata", this.#subject("part", batch, ">"));
  }

  /** Returns the ids of batches that have answers or parts of answers. */
  async batches(): Promise<ReadonlySet<string>> {
    const answers = await this.#jetStream.subjects("batchdata", this.#subject("answer", "*", "*"));
    const parts = await this.#jetStream.subjects("batchdata", this.#subject("part", "*", "*", "*"));
    return new Set([
      ...answers.map((subject) => subject.split(".").at(-2) ?? ""),
      ...parts.map((subject) => subject.split(".").at(-3) ?? ""),
    ]);
  }

  async #read(batch: string, number: number): Promise<z.output<typeof answerSchema> | undefined> {
    const stored = await this.#jetStream.get("batchdata", this.#subject("answer", batch, String(number)));
    const bytes = stored && (await unpackOrUndefined(stored.data));
    return bytes && readJson(answerSchema, bytes);
  }

  async #saveParts(batch: string, bytes: Uint8Array): Promise<{ nonce: string; count: number }> {
    const nonce = crypto.randomUUID().replaceAll("-", "");
    const parts = splitBytes(bytes, PART_BYTES);
    try {
      for (const [at, part] of parts.entries())
        await this.#jetStream.put(this.#subject("part", batch, nonce, String(at)), part);
    } catch (error) {
      // The answer will be saved again, and these parts would only take storage.
      await this.#jetStream
        .purge("batchdata", this.#subject("part", batch, nonce, "*"))
        .catch(() => undefined);
      throw error;
    }
    return { nonce, count: parts.length };
  }

  async #readParts(
    batch: string,
    { nonce, count }: { nonce: string; count: number },
  ): Promise<string | undefined> {
    const read: Uint8Array[] = [];
    for (let at = 0; at < count; at += 1) {
      const part = await this.#jetStream.get("batchdata", this.#subject("part", batch, nonce, String(at)));
      if (!part) return undefined;
      read.push(part.data);
    }
    return (await unpackOrUndefined(Buffer.concat(read)))?.toString("utf8");
  }

  async #readNewAnswers(batch: string, tally: OpenTally): Promise<void> {
    const filter = this.#subject("answer", batch, "*");
    const options = { from: tally.seq + 1, headersOnly: true };
    await this.#jetStream.readAll("batchdata", filter, options, ({ subject, headers: found, seq }) => {
      tally.add(Number(subject.split(".").at(-1)), found?.get(OUTCOME_HEADER) ?? "");
      tally.seq = Math.max(tally.seq, seq);
    });
  }

  #subject(kind: "answer" | "part", ...parts: readonly string[]): string {
    return this.#jetStream.subject("batchdata", kind, ...parts);
  }
}

/** Returns undefined for invalid or too long data, which any NATS client may have written. */
async function unpackOrUndefined(data: Uint8Array): Promise<Buffer | undefined> {
  return await decompress(data, { maxOutputLength: MAX_ANSWER_BYTES }).catch(() => undefined);
}
