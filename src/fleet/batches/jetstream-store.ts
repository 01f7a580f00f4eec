import { setTimeout as sleep } from "node:timers/promises";
import {
  DiscardPolicy,
  type JetStreamManager,
  type JsMsg,
  RetentionPolicy,
  StorageType,
  type StreamConfig,
} from "@nats-io/jetstream";
import { type MsgHdrs, type NatsConnection, nuid } from "@nats-io/transport-node";
import type { Logger } from "pino";
import type { FleetConnection } from "../fleet-connection.ts";
import {
  FIRST_RESEND_MS,
  codeOf,
  describeError,
  IN_PROCESS,
  removeMessages,
  WRONG_LAST_SEQUENCE,
} from "../jetstream/jetstream-errors.ts";
import {
  type TooFewReplicas,
  makeStream,
  PreparedStreams,
  type SharingLog,
  streamName,
} from "../jetstream/streams.ts";
import { readMessages } from "./read-messages.ts";

/** Timeout of a request, longer than a cluster lacks a leader, also on busy machines. */
const TIMEOUT_MS = 20_000;
/** Delay before a message is stored again while the server is still storing it. */
const IN_PROCESS_DELAY_MS = 250;
/** Delay before the streams are looked for again: where they existed, and where they never did. */
const RETRY_DELAY_MS = { there: 1000, absent: 300_000 };

/** Header with the id of a message. */
const MSG_ID = "Nats-Msg-Id";

/** Maximum bytes of a batch id in a notification; longer ones are cut. */
const MAX_ID_BYTES = 64;

/** Where new files and batches are stored. */
type PrimaryStore = "fleet" | "machine" | "away";

interface Stored {
  readonly data: Uint8Array;
  readonly seq: number;
  /** Unix milliseconds. */
  readonly time: number;
}

/** Client of JetStream for batches: messages by subject, replaced with compare-and-swap on their sequence number. */
export class JetStreamStore {
  readonly #connection: FleetConnection;
  readonly #prefix: string;
  readonly #streams: PreparedStreams;

  constructor(
    connection: FleetConnection,
    prefix: string,
    logger: Pick<Logger, "info">,
    sharing: SharingLog,
  ) {
    this.#connection = connection;
    this.#prefix = prefix;
    this.#streams = new PreparedStreams({
      connection,
      sharing,
      timeoutMs: TIMEOUT_MS,
      pauseMs: RETRY_DELAY_MS,
      make: async (manager, isCluster) => await makeStreams(manager, prefix, isCluster),
      onPrepared: (error, wasThere) => {
        if (error !== undefined) return sharing.failed("batches", error);
        const isBack = sharing.recovered("batches");
        if (!wasThere) logger.info("fleet: all machines share files and batches");
        else if (isBack) logger.info("fleet: files and batches are shared again");
        return undefined;
      },
    });
  }

  /** True if the server is reachable, as far as is known. */
  get isConnected(): boolean {
    return this.#connection.isConnected;
  }

  subject(kind: StreamKind, ...parts: readonly string[]): string {
    return this.#connection.subject(kind, ...parts);
  }

  stream(kind: StreamKind): string {
    return streamName(this.#prefix, kind);
  }

  /** Announces that a batch has changed; a lost announcement is made up for by polling. */
  announceChange(batch: string): void {
    this.broadcast("batchnews", Buffer.from(batch));
  }

  /** Calls back when a batch may have changed; with undefined if any may have. */
  onBatchChange(listener: (batch: string | undefined) => void): void {
    this.listen("batchnews", (data) => {
      // Older machines send no id.
      const batch = Buffer.from(data.subarray(0, MAX_ID_BYTES)).toString();
      listener(batch === "" ? undefined : batch);
    });
    this.onChange(() => listener(undefined));
  }

  /** Sends a message to all machines, including this one, without storing it. */
  broadcast(topic: string, data: Uint8Array): void {
    this.#connection.publish(this.#connection.subject(topic), data);
  }

  /** Calls back with messages of {@link broadcast}. */
  listen(topic: string, read: (data: Uint8Array) => void): void {
    this.#connection.listen(this.#connection.subject(topic), read);
  }

  /** Calls back when the connection is made or lost. */
  onChange(listener: () => void): void {
    this.#connection.onChange(listener);
  }

  /** Returns where to store new items: on this machine if the fleet has never had JetStream. */
  async primaryStore(): Promise<PrimaryStore> {
    const { nats } = this.#connection;
    if (!nats) return this.#streams.exist ? "away" : "machine";
    try {
      await this.#streams.ready(nats);
      return "fleet";
    } catch {
      return this.#streams.exist === false ? "machine" : "away";
    }
  }

  /**
   * Runs an action with JetStream, once more if its streams had disappeared.
   * @throws ServiceError fleet_unreachable, or insufficient_disk if the server's storage is full
   */
  async use<Result>(
    action: (manager: JetStreamManager, nats: NatsConnection) => Promise<Result>,
  ): Promise<Result> {
    const { nats } = this.#connection;
    if (!nats) throw describeError(undefined, this.#connection);
    try {
      return await this.#streams.use(nats, async (manager) => await action(manager, nats));
    } catch (error) {
      throw describeError(error, this.#connection);
    }
  }

  async get(kind: StreamKind, subject: string): Promise<Stored | undefined> {
    return await this.use(async ({ streams }) => {
      const found = await streams.getMessage(this.stream(kind), { last_by_subj: subject });
      return found ? { data: found.data, seq: found.seq, time: found.time.getTime() } : undefined;
    });
  }

  /**
   * Stores a message in place of the current one of its subject.
   * @param expected sequence number of the current message, 0 if there must be none; absent if any may be replaced
   * @returns the new sequence number, or undefined if another message is there
   */
  async put(
    subject: string,
    data: Uint8Array,
    expected?: number,
    headers?: MsgHdrs,
  ): Promise<number | undefined> {
    const expect = expected === undefined ? {} : { expect: { lastSubjectSequence: expected } };
    // Lets the server recognize a message that is resent.
    const options = { timeout: TIMEOUT_MS, msgID: nuid.next(), ...expect, ...(headers && { headers }) };
    const startedAt = performance.now();
    return await this.use(async (manager) => {
      for (;;) {
        try {
          return (await manager.jetstream().publish(subject, data, options)).seq;
        } catch (error) {
          const tookMs = performance.now() - startedAt;
          const wasResent = tookMs >= FIRST_RESEND_MS;
          if (codeOf(error) === WRONG_LAST_SEQUENCE)
            return wasResent ? await this.#sequenceIfStored(manager, subject, options.msgID) : undefined;
          if (codeOf(error) !== IN_PROCESS || tookMs > TIMEOUT_MS) throw error;
        }
        await sleep(IN_PROCESS_DELAY_MS, undefined, { ref: false });
      }
    });
  }

  /**
   * Returns the number of a resent message if it was stored: older servers check the expected number before the message
   * id.
   */
  async #sequenceIfStored(
    { streams }: JetStreamManager,
    subject: string,
    msgId: string,
  ): Promise<number | undefined> {
    const kind = STREAMS.find((each) => subject.startsWith(this.subject(each, "")));
    const found = kind && (await streams.getMessage(this.stream(kind), { last_by_subj: subject }));
    return found?.header.get(MSG_ID) === msgId ? found.seq : undefined;
  }

  /** Removes the messages of a subject, which may have wildcards. */
  async purge(kind: StreamKind, filter: string): Promise<void> {
    const stream = this.stream(kind);
    await this.use(async (manager, { info }) => await removeMessages(manager, info, stream, filter));
  }

  /** Returns the subjects that have a message. */
  async subjects(kind: StreamKind, filter: string): Promise<readonly string[]> {
    return await this.use(async ({ streams }) => {
      const { state } = await streams.info(this.stream(kind), { subjects_filter: filter });
      return Object.keys(state.subjects ?? {});
    });
  }

  /** Reads all messages of a filter in order, from a sequence number on; without content if `headersOnly`. */
  async readAll(
    kind: StreamKind,
    filter: string,
    { from = 1, headersOnly = false }: { readonly from?: number; readonly headersOnly?: boolean },
    take: (message: JsMsg) => void,
  ): Promise<void> {
    const options = { filter, from, headersOnly, timeoutMs: TIMEOUT_MS };
    await this.use(async (manager, { info }) => {
      const { version = "" } = info ?? {};
      await readMessages(manager, this.stream(kind), { ...options, version }, take);
    });
  }
}

const MIB = 1024 * 1024;
/** Maximum age of queued lines; their batches end after 24 hours. */
const WORK_TTL_MS = 3 * 24 * 3_600_000;

/** Streams of batches, the largest last. All their subjects begin with this word after the prefix. */
export const STREAMS = ["batches", "batchwork", "batchdata"] as const;
type StreamKind = (typeof STREAMS)[number];

/** Bytes on the server's disk in order of preference. */
const SIZES: Readonly<Record<StreamKind, readonly number[]>> = {
  batches: [64, 16, 4].map((size) => size * MIB),
  batchwork: [64, 16, 4].map((size) => size * MIB),
  batchdata: [4096, 1024, 256, 64, 16].map((size) => size * MIB),
};

/** Creates missing streams as {@link makeStream} does. */
async function makeStreams(
  manager: JetStreamManager,
  prefix: string,
  isCluster: boolean,
): Promise<TooFewReplicas | undefined> {
  let tooFew: TooFewReplicas | undefined;
  for (const kind of STREAMS) {
    const config = configOf(kind, streamName(prefix, kind), `${prefix}.${kind}.>`);
    const fewer = await makeStream(manager, config, SIZES[kind], isCluster);
    tooFew ??= fewer;
  }
  return tooFew;
}

/** Full streams refuse new messages instead of evicting old ones. */
function configOf(kind: StreamKind, name: string, subject: string): Partial<StreamConfig> & { name: string } {
  const work = { retention: RetentionPolicy.Workqueue, max_age: WORK_TTL_MS * 1e6 };
  return {
    name,
    subjects: [subject],
    storage: StorageType.File,
    discard: DiscardPolicy.New,
    ...(kind === "batchwork" ? work : { retention: RetentionPolicy.Limits, max_msgs_per_subject: 1 }),
  };
}
