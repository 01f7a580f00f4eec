import { AckPolicy, type ConsumerInfo, DeliverPolicy } from "@nats-io/jetstream";
import { errors } from "@nats-io/transport-node";
import { z } from "zod";
import { mapInGroups } from "../../async/promises.ts";
import type { PendingLine } from "../../batches/batch.ts";
import { readJson, writeJson } from "../wire-format.ts";
import type { SharedBatch } from "./batch-record.ts";
import type { JetStreamStore } from "./jetstream-store.ts";

/** Maximum lines that a machine takes at once; they are neighbors with common prompt prefixes. */
const MAX_RUN_LINES = 32;
/** Minimum number of runs of a batch, so that all machines get a part of a short one. */
const MIN_RUNS = 24;
/** Time without a progress message after which lines are redelivered to another machine. */
const ACK_TIMEOUT_MS = 15_000;
const PROGRESS_INTERVAL_MS = 4000;
const CONSUMER_TTL_MS = 3_600_000;
/** Maximum parallel writes. */
const PARALLEL_WRITES = 16;
const TIMEOUT_MS = 5000;
/** Number of parts in $JS.ACK.stream.consumer.deliveries.sequence.sequence.time.pending */
const ACK_PARTS = 9;
const ACK = new TextEncoder().encode("+ACK");
const IN_PROGRESS = new TextEncoder().encode("+WPI");
const NEGATIVE_ACK = new TextEncoder().encode("-NAK");

/** Maximum bytes of a line, more than any limit of a body. */
const MAX_LENGTH = 2 ** 30;

/** Position of a line in the input. */
type LinePosition = Pick<PendingLine, "number" | "start" | "length">;

const runSchema = z.object({
  lines: z
    .array(
      z.object({ number: z.int().min(1), start: z.int().min(0), length: z.int().min(0).max(MAX_LENGTH) }),
    )
    .max(MAX_RUN_LINES),
});

/** Batch and the queue of its lines. */
export type QueuedBatch = Pick<SharedBatch, "id" | "queue">;

/** Consecutive lines of one model that this machine has taken. */
export interface LineRun {
  /** Sequence number of the message, equal in all deliveries. */
  readonly sequence: string;
  readonly lines: readonly LinePosition[];
  /** True if another machine had the lines before and may have answered some of them. */
  readonly isRedelivered: boolean;
  /** Acknowledges that all lines are answered. */
  done(): void;
  /** Returns the lines to the queue. */
  release(): void;
  /** Stops the progress messages without returning the lines. */
  stopProgress(): void;
}

/** Queued lines, in a work queue from which all machines take. */
export class LineRuns {
  readonly #jetStream: JetStreamStore;

  constructor(jetStream: JetStreamStore) {
    this.#jetStream = jetStream;
  }

  /** Queues lines of one model in this order. */
  async add(batch: QueuedBatch, group: number, lines: readonly LinePosition[]): Promise<void> {
    const size = Math.min(MAX_RUN_LINES, Math.max(1, Math.ceil(lines.length / MIN_RUNS)));
    const runs = Array.from({ length: Math.ceil(lines.length / size) }, (_, at) =>
      lines.slice(at * size, (at + 1) * size).map(({ number, start, length }) => ({ number, start, length })),
    );
    await this.#ensureConsumer(batch, group);
    await mapInGroups(runs, PARALLEL_WRITES, async (run) =>
      this.#jetStream.put(this.#subject(batch, group), writeJson({ lines: run })),
    );
  }

  /** Takes the next lines of a model; undefined if none are queued. */
  async take(batch: QueuedBatch, group: number): Promise<LineRun | undefined> {
    const stream = this.#jetStream.stream("batchwork");
    const name = consumerName(batch, group);
    return await this.#jetStream.use(async (_, nats) => {
      const request = writeJson({ batch: 1, no_wait: true });
      const subject = `$JS.API.CONSUMER.MSG.NEXT.${stream}.${name}`;
      // Delivered messages have their own subject, so replies cannot be matched on a shared subscription.
      const options = { timeout: TIMEOUT_MS, noMux: true };
      const message = await nats.request(subject, request, options).catch((error: unknown) => {
        if (error instanceof errors.RequestError && error.isNoResponders()) return undefined;
        throw error;
      });
      // The server may have lost its consumers.
      if (!message) await this.#ensureConsumer(batch, group);
      const reply = message?.reply;
      const run = message && readJson(runSchema, message.data);
      if (!reply?.startsWith("$JS.ACK.")) return undefined;
      const publish = (what: Uint8Array): void => {
        if (this.#jetStream.isConnected) nats.publish(reply, what);
      };
      // Acknowledges an unreadable message, which would be redelivered again and again otherwise.
      if (!run) return (publish(ACK), undefined);
      const progress = setInterval(() => publish(IN_PROGRESS), PROGRESS_INTERVAL_MS).unref();
      const end = (what: Uint8Array): void => {
        clearInterval(progress);
        publish(what);
        // Announced so that the leader can check for the end, and others can take released lines.
        this.#jetStream.announceChange(batch.id);
      };
      const { deliveries, sequence } = parseReply(reply);
      return {
        ...run,
        sequence,
        isRedelivered: deliveries !== "1",
        done: () => end(ACK),
        release: () => end(NEGATIVE_ACK),
        stopProgress: () => clearInterval(progress),
      };
    });
  }

  /**
   * Returns true if lines are queued or being run. Counts the consumer's messages: after a power failure the stream may
   * still have messages that are already acknowledged, and are never delivered.
   */
  async hasAny(batch: QueuedBatch): Promise<boolean> {
    for (const group of await this.groups(batch)) {
      const { num_pending: waiting, num_ack_pending: running } = await this.#ensureConsumer(batch, group);
      if (waiting + running > 0) return true;
    }
    return false;
  }

  /** Returns the groups that have lines queued or being run. */
  async groups({ id, queue }: QueuedBatch): Promise<ReadonlySet<number>> {
    return (await this.queues(id)).get(queue) ?? new Set();
  }

  /** Returns all queues of a batch that have lines, with their groups. */
  async queues(id: string): Promise<ReadonlyMap<string, ReadonlySet<number>>> {
    const subjects = await this.#jetStream.subjects("batchwork", this.#subject({ id, queue: "*" }, "*"));
    const queues = new Map<string, Set<number>>();
    for (const subject of subjects) {
      const [queue = "", group] = subject.split(".").slice(-2);
      queues.set(queue, (queues.get(queue) ?? new Set()).add(Number(group)));
    }
    return queues;
  }

  /**
   * Removes all lines of a queue.
   * @param groups all groups of the queue
   */
  async remove(batch: QueuedBatch, groups: Iterable<number>): Promise<void> {
    await this.#jetStream.purge("batchwork", this.#subject(batch, "*"));
    const stream = this.#jetStream.stream("batchwork");
    await this.#jetStream.use(async ({ consumers }) => {
      for (const group of groups)
        await consumers.delete(stream, consumerName(batch, group)).catch(() => undefined);
    });
  }

  /** Creates the consumer of a group if it is missing. */
  async #ensureConsumer(batch: QueuedBatch, group: number): Promise<ConsumerInfo> {
    return await this.#jetStream.use(
      async ({ consumers }) =>
        await consumers.add(this.#jetStream.stream("batchwork"), {
          durable_name: consumerName(batch, group),
          filter_subject: this.#subject(batch, group),
          deliver_policy: DeliverPolicy.All,
          ack_policy: AckPolicy.Explicit,
          ack_wait: ACK_TIMEOUT_MS * 1e6,
          max_ack_pending: -1,
          // Recreated when a line is taken; deleted batches leave none behind.
          inactive_threshold: CONSUMER_TTL_MS * 1e6,
        }),
    );
  }

  #subject({ id, queue }: QueuedBatch, group: number | "*"): string {
    return this.#jetStream.subject("batchwork", id, queue, String(group));
  }
}

/**
 * Reads delivery count and sequence number from the subject of an acknowledgment, which a domain extends by two parts.
 */
function parseReply(reply: string): { readonly deliveries: string; readonly sequence: string } {
  const parts = reply.split(".");
  const [deliveries = "", sequence = ""] = parts.slice(parts.length > ACK_PARTS ? 6 : 4);
  return { deliveries, sequence };
}

function consumerName({ id, queue }: QueuedBatch, group: number): string {
  return `${id}_${queue}_${group}`;
}
