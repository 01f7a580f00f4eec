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
  ASKED_ONCE_MS,
  codeOf,
  explained,
  IN_PROCESS,
  removeMessages,
  WRONG_LAST_SEQUENCE,
} from "../jetstream/jetstream-errors.ts";
import { type FewCopies, makeStream, PreparedStreams, type SharingLog } from "../jetstream/streams.ts";
import { readMessages } from "./read-messages.ts";

/** A request to the server: longer than a cluster is without a leader, also on busy machines. */
const TIMEOUT_MS = 20_000;
/** Before a message is stored again of which the server says that it is being stored. */
const IN_PROCESS_MS = 250;
/** Before the streams are looked for again, where they have been and where they have never been. */
const PAUSE_MS = { there: 1000, absent: 300_000 };

/** The header with the id of a message. */
const MSG_ID = "Nats-Msg-Id";

/** Of a batch, in bytes; whatever else comes is cut. */
const LONGEST_ID = 64;
const encoder = new TextEncoder();
const decoder = new TextDecoder();

/** Where new files and batches belong. */
export type PrimaryStore = "fleet" | "machine" | "away";

export interface Stored {
  readonly data: Uint8Array;
  readonly seq: number;
  /** Unix milliseconds. */
  readonly time: number;
}

/** JetStream, as batches use it: messages by subject that are replaced only by those who know the one before. */
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
      pauseMs: PAUSE_MS,
      make: async (manager, isCluster) => await makeStreams(manager, prefix, isCluster),
      onPrepared: (error, wasThere) => {
        if (error !== undefined) return sharing.failed("batches", error);
        const isBack = sharing.works("batches");
        if (!wasThere) logger.info("fleet: all machines share files and batches");
        else if (isBack) logger.info("fleet: files and batches are shared again");
        return undefined;
      },
    });
  }

  /** Whether the server can be reached now, as far as is known. */
  get isConnected(): boolean {
    return this.#connection.isConnected;
  }

  subject(kind: StreamKind, ...parts: readonly string[]): string {
    return this.#connection.subject(kind, ...parts);
  }

  stream(kind: StreamKind): string {
    return streamName(this.#prefix, kind);
  }

  /** Tells without delay that a batch has changed; what is lost is found when it is looked for. */
  nudge(batch: string): void {
    this.tell("batchnews", encoder.encode(batch));
  }

  /** Calls back when a batch may have changed; undefined: any may have. */
  onNews(listener: (batch: string | undefined) => void): void {
    this.listen("batchnews", (data) => {
      // Older machines do not say which.
      const batch = decoder.decode(data.subarray(0, LONGEST_ID));
      listener(batch === "" ? undefined : batch);
    });
    this.onChange(() => listener(undefined));
  }

  /** Tells all machines something, this one as well, without anything stored. */
  tell(word: string, data: Uint8Array): void {
    this.#connection.publish(this.#connection.subject(word), data);
  }

  listen(word: string, read: (data: Uint8Array) => void): void {
    this.#connection.listen(this.#connection.subject(word), read);
  }

  /** Calls back when the connection is made or lost. */
  onChange(listener: () => void): void {
    this.#connection.onChange(listener);
  }

  /** Where new files and batches belong now: on this machine where the fleet has never had a place for them. */
  async home(): Promise<PrimaryStore> {
    const { nats } = this.#connection;
    if (!nats) return this.#streams.areThere ? "away" : "machine";
    try {
      await this.#streams.ready(nats);
      return "fleet";
    } catch {
      return this.#streams.areThere === false ? "machine" : "away";
    }
  }

  /**
   * Does something with JetStream, once more if its streams were gone.
   * @throws ServiceError fleet_unreachable, or insufficient_disk when the server has no room
   */
  async use<Result>(
    action: (manager: JetStreamManager, nats: NatsConnection) => Promise<Result>,
  ): Promise<Result> {
    const { nats } = this.#connection;
    if (!nats) throw explained(undefined, this.#connection);
    try {
      return await this.#streams.use(nats, async (manager) => await action(manager, nats));
    } catch (error) {
      throw explained(error, this.#connection);
    }
  }

  async get(kind: StreamKind, subject: string): Promise<Stored | undefined> {
    return await this.use(async ({ streams }) => {
      const found = await streams.getMessage(this.stream(kind), { last_by_subj: subject });
      return found ? { data: found.data, seq: found.seq, time: found.time.getTime() } : undefined;
    });
  }

  /**
   * Stores a message in the place of the one before.
   * @param expected the number of the one before, 0: none; absent: whichever
   * @returns its number, or undefined when another one is there
   */
  async put(
    subject: string,
    data: Uint8Array,
    expected?: number,
    headers?: MsgHdrs,
  ): Promise<number | undefined> {
    const expect = expected === undefined ? {} : { expect: { lastSubjectSequence: expected } };
    // By this, the server knows a message that is sent again.
    const options = { timeout: TIMEOUT_MS, msgID: nuid.next(), ...expect, ...(headers && { headers }) };
    const startedAt = performance.now();
    return await this.use(async (manager) => {
      for (;;) {
        try {
          return (await manager.jetstream().publish(subject, data, options)).seq;
        } catch (error) {
          const tookMs = performance.now() - startedAt;
          const isAgain = tookMs >= ASKED_ONCE_MS;
          if (codeOf(error) === WRONG_LAST_SEQUENCE)
            return isAgain ? await this.#stored(manager, subject, options.msgID) : undefined;
          if (codeOf(error) !== IN_PROCESS || tookMs > TIMEOUT_MS) throw error;
        }
        await sleep(IN_PROCESS_MS, undefined, { ref: false });
      }
    });
  }

  /** The number of a message that may have been sent twice, if it is the one that is there: older servers compare that first. */
  async #stored({ streams }: JetStreamManager, subject: string, msgId: string): Promise<number | undefined> {
    const kind = STREAMS.find((each) => subject.startsWith(this.subject(each, "")));
    const found = kind && (await streams.getMessage(this.stream(kind), { last_by_subj: subject }));
    return found?.header.get(MSG_ID) === msgId ? found.seq : undefined;
  }

  /** Removes the messages of a subject, which may have wildcards. */
  async purge(kind: StreamKind, filter: string): Promise<void> {
    const stream = this.stream(kind);
    await this.use(async (manager, { info }) => await removeMessages(manager, info, stream, filter));
  }

  /** The subjects that have a message. */
  async subjects(kind: StreamKind, filter: string): Promise<readonly string[]> {
    return await this.use(async ({ streams }) => {
      const { state } = await streams.info(this.stream(kind), { subjects_filter: filter });
      return Object.keys(state.subjects ?? {});
    });
  }

  /** Reads all messages of a filter from a number on, in their order; without their content if `headersOnly`. */
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
/** What is on its way to be run is over after 24 hours, with its batch. */
const WORK_KEPT_MS = 3 * 24 * 3_600_000;

/** The streams of batches. Their subjects begin with the same word. */
export const STREAMS = ["batches", "batchdata", "batchwork"] as const;
type StreamKind = (typeof STREAMS)[number];

/** Bytes on the server's disk; less where an account allows less. */
const SIZES: Readonly<Record<StreamKind, readonly number[]>> = {
  batches: [64, 16, 4].map((size) => size * MIB),
  batchwork: [64, 16, 4].map((size) => size * MIB),
  batchdata: [4096, 1024, 256, 64, 16].map((size) => size * MIB),
};

/** The name of a stream. */
export function streamName(prefix: string, kind: StreamKind): string {
  return `${prefix.replaceAll(".", "_")}_${kind}`;
}

/** Makes the streams that are missing, as {@link makeStream} does. */
async function makeStreams(
  manager: JetStreamManager,
  prefix: string,
  isCluster: boolean,
): Promise<FewCopies | undefined> {
  let few: FewCopies | undefined;
  for (const kind of ["batches", "batchwork", "batchdata"] as const) {
    const config = configOf(kind, streamName(prefix, kind), `${prefix}.${kind}.>`);
    const fewer = await makeStream(manager, config, SIZES[kind], isCluster);
    few ??= fewer;
  }
  return few;
}

/** Nothing makes room for something else: what does not fit is refused. */
function configOf(kind: StreamKind, name: string, subject: string): Partial<StreamConfig> & { name: string } {
  const work = { retention: RetentionPolicy.Workqueue, max_age: WORK_KEPT_MS * 1e6 };
  return {
    name,
    subjects: [subject],
    storage: StorageType.File,
    discard: DiscardPolicy.New,
    ...(kind === "batchwork" ? work : { retention: RetentionPolicy.Limits, max_msgs_per_subject: 1 }),
  };
}
