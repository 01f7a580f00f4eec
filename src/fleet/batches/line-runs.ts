import { AckPolicy, type ConsumerInfo, DeliverPolicy } from "@nats-io/jetstream";
import { errors } from "@nats-io/transport-node";
import { z } from "zod";
import type { WaitingLine } from "../../batches/batch.ts";
import { readJson, writeJson } from "../wire-format.ts";
import type { SharedBatch } from "./batch-record.ts";
import type { JetStreamStore } from "./jetstream-store.ts";

/** Lines that one machine gets at once: neighbors, which begin alike. */
const MAX_LINES = 32;
/** Runs that a short batch is divided into, so that all machines have a part of it. */
const RUNS = 24;
/** Another machine gets the lines of one that has not told for so long that it works on them. */
const SILENCE_MS = 15_000;
const BEAT_MS = 4000;
const UNUSED_MS = 3_600_000;
/** Publishing at once. */
const AT_ONCE = 16;
const TIMEOUT_MS = 5000;
/** $JS.ACK.stream.consumer.deliveries.sequence.sequence.time.pending */
const ACK_PARTS = 9;
const ACK = new TextEncoder().encode("+ACK");
const BUSY = new TextEncoder().encode("+WPI");
const GIVE_BACK = new TextEncoder().encode("-NAK");

/** Of a line; more than any limit of a body. */
const MAX_LENGTH = 2 ** 30;

/** Where lines are in the input. */
type PlacedLine = Pick<WaitingLine, "number" | "start" | "length">;

const runSchema = z.object({
  lines: z
    .array(
      z.object({ number: z.int().min(1), start: z.int().min(0), length: z.int().min(0).max(MAX_LENGTH) }),
    )
    .max(MAX_LINES),
});

/** A batch, and which of its queues has its lines. */
export type QueuedBatch = Pick<SharedBatch, "id" | "queue">;

/** Consecutive lines of one model that this machine has taken on. */
export interface LineRun {
  /** Of its message; the same each time that it is given out. */
  readonly sequence: string;
  readonly lines: readonly PlacedLine[];
  /** Whether someone has had it before, who may have answered a part of it. */
  readonly wasTaken: boolean;
  /** All are answered. */
  done(): void;
  /** Lets another machine have it. */
  giveBack(): void;
  /** Leaves it to who had it before. */
  leave(): void;
}

/** The lines that wait, in a work queue that all machines take from. */
export class LineRuns {
  readonly #place: JetStreamStore;

  constructor(place: JetStreamStore) {
    this.#place = place;
  }

  /** Queues lines of one model, in this order. */
  async add(batch: QueuedBatch, group: number, lines: readonly PlacedLine[]): Promise<void> {
    const size = Math.min(MAX_LINES, Math.max(1, Math.ceil(lines.length / RUNS)));
    const runs = Array.from({ length: Math.ceil(lines.length / size) }, (_, at) =>
      lines.slice(at * size, (at + 1) * size).map(({ number, start, length }) => ({ number, start, length })),
    );
    await this.#consumer(batch, group);
    for (let at = 0; at < runs.length; at += AT_ONCE) {
      await Promise.all(
        runs
          .slice(at, at + AT_ONCE)
          .map(async (run) => this.#place.put(this.#subject(batch, group), writeJson({ lines: run }))),
      );
    }
  }

  /** Takes the next lines of a model; undefined if none wait. */
  async take(batch: QueuedBatch, group: number): Promise<LineRun | undefined> {
    const stream = this.#place.stream("batchwork");
    const name = consumerName(batch, group);
    return await this.#place.use(async (_, nats) => {
      const ask = writeJson({ batch: 1, no_wait: true });
      const subject = `$JS.API.CONSUMER.MSG.NEXT.${stream}.${name}`;
      // What comes has its own subject, by which answers to requests that share a subscription are not found.
      const options = { timeout: TIMEOUT_MS, noMux: true };
      const message = await nats.request(subject, ask, options).catch((error: unknown) => {
        if (error instanceof errors.RequestError && error.isNoResponders()) return undefined;
        throw error;
      });
      // The server may have begun anew.
      if (!message) await this.#consumer(batch, group);
      const reply = message?.reply;
      const run = message && readJson(runSchema, message.data);
      if (!reply?.startsWith("$JS.ACK.")) return undefined;
      const say = (what: Uint8Array): void => {
        if (this.#place.isConnected) nats.publish(reply, what);
      };
      // What nobody can read must not come again and again.
      if (!run) return (say(ACK), undefined);
      const beat = setInterval(() => say(BUSY), BEAT_MS).unref();
      const end = (what: Uint8Array): void => {
        clearInterval(beat);
        say(what);
        // So that whoever leads need not wait to see whether all is done, nor others to take what is given back.
        this.#place.nudge(batch.id);
      };
      const { deliveries, sequence } = delivery(reply);
      return {
        ...run,
        sequence,
        wasTaken: deliveries !== "1",
        done: () => end(ACK),
        giveBack: () => end(GIVE_BACK),
        leave: () => clearInterval(beat),
      };
    });
  }

  /**
   * Whether lines wait, or are being run. After a power failure, the server may have lines of which it has also saved that
   * they are done: it gives none of them out.
   */
  async hasAny(batch: QueuedBatch): Promise<boolean> {
    for (const group of await this.groups(batch)) {
      const { num_pending: waiting, num_ack_pending: running } = await this.#consumer(batch, group);
      if (waiting + running > 0) return true;
    }
    return false;
  }

  /** The groups of which lines wait, or are being run. */
  async groups({ id, queue }: QueuedBatch): Promise<ReadonlySet<number>> {
    return (await this.queues(id)).get(queue) ?? new Set();
  }

  /** All queues of a batch that have lines, with their groups. */
  async queues(id: string): Promise<ReadonlyMap<string, ReadonlySet<number>>> {
    const subjects = await this.#place.subjects("batchwork", this.#subject({ id, queue: "*" }, "*"));
    const queues = new Map<string, Set<number>>();
    for (const subject of subjects) {
      const [queue = "", group] = subject.split(".").slice(-2);
      queues.set(queue, (queues.get(queue) ?? new Set()).add(Number(group)));
    }
    return queues;
  }

  /**
   * Forgets all lines of a queue.
   * @param groups that it has had
   */
  async remove(batch: QueuedBatch, groups: Iterable<number>): Promise<void> {
    await this.#place.purge("batchwork", this.#subject(batch, "*"));
    const stream = this.#place.stream("batchwork");
    await this.#place.use(async ({ consumers }) => {
      for (const group of groups)
        await consumers.delete(stream, consumerName(batch, group)).catch(() => undefined);
    });
  }

  /** Makes it, if it is not there. */
  async #consumer(batch: QueuedBatch, group: number): Promise<ConsumerInfo> {
    return await this.#place.use(
      async ({ consumers }) =>
        await consumers.add(this.#place.stream("batchwork"), {
          durable_name: consumerName(batch, group),
          filter_subject: this.#subject(batch, group),
          deliver_policy: DeliverPolicy.All,
          ack_policy: AckPolicy.Explicit,
          ack_wait: SILENCE_MS * 1e6,
          max_ack_pending: -1,
          // Made again when a line is taken; a batch that was deleted leaves none.
          inactive_threshold: UNUSED_MS * 1e6,
        }),
    );
  }

  #subject({ id, queue }: QueuedBatch, group: number | "*"): string {
    return this.#place.subject("batchwork", id, queue, String(group));
  }
}

/** How often a message has been given out, and its number, from the subject of its acknowledgement; a server with a domain puts two parts in front. */
function delivery(reply: string): { readonly deliveries: string; readonly sequence: string } {
  const parts = reply.split(".");
  const [deliveries = "", sequence = ""] = parts.slice(parts.length > ACK_PARTS ? 6 : 4);
  return { deliveries, sequence };
}

function consumerName({ id, queue }: QueuedBatch, group: number): string {
  return `${id}_${queue}_${group}`;
}
