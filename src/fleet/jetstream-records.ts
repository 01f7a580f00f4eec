import { promisify } from "node:util";
import { gunzip, gzip } from "node:zlib";
import {
  DiscardPolicy,
  type JetStreamManager,
  RetentionPolicy,
  StorageType,
  type StoredMsg,
} from "@nats-io/jetstream";
import type { Logger } from "pino";
import { RecordsUnreachable, type SharedRecords } from "../api/services.ts";
import type { FleetConnection } from "./fleet-connection.ts";
import { splitBytes } from "./wire-format.ts";
import { codeOf, removeMessages, unreachableReason } from "./jetstream/jetstream-errors.ts";
import { makeStream, PreparedStreams, type SharingLog, streamName } from "./jetstream/streams.ts";

/** Retention of OpenAI's service for responses. */
const RETENTION_MS = 30 * 24 * 60 * 60 * 1000;
/** Bytes on the NATS server's disk, in order of preference; the oldest records are evicted. */
const STREAM_BYTES = [512, 128, 32].map((mebibytes) => mebibytes * 1024 * 1024);
/** Bytes of a message; the server's default limit is 1 MiB. */
const CHUNK_BYTES = 512 * 1024;
const MAX_CHUNKS = 32;
/** Longer records stay on their machine. */
const MAX_BYTES = 32 * 1024 * 1024;
/** Timeout of a request to JetStream, and pause of all requests after a failure. */
const TIMEOUT_MS = 2000;
const FAILURE_PAUSE_MS = 10_000;
/** Retry delay if records may be available soon: without a connection, or without a cluster leader. */
const RETRY_DELAY_MS = 1000;
const NO_MESSAGE = 10_037;
/** Bytes before the first chunk: the number of chunks. */
const HEAD_BYTES = 1;
/** Subject part in place of a chunk's number: the record is erased. */
const ERASED = "erased";

const pack = promisify(gzip);
const unpack = promisify(gunzip);

/** Records in a JetStream stream that is limited by size and age. */
export class JetStreamRecords implements SharedRecords {
  readonly #connection: FleetConnection;
  readonly #stream: string;
  readonly #logger: Pick<Logger, "debug" | "info">;
  readonly #sharing: SharingLog;
  readonly #streams: PreparedStreams;
  #pausedUntil = 0;
  /** Error of the last failure. */
  #lastError: unknown;
  /** Time until which no records are written because storage is full. */
  #fullUntil = 0;

  constructor(
    connection: FleetConnection,
    prefix: string,
    logger: Pick<Logger, "debug" | "info">,
    sharing: SharingLog,
  ) {
    this.#connection = connection;
    this.#stream = streamName(prefix, "responses");
    this.#logger = logger;
    this.#sharing = sharing;
    this.#streams = new PreparedStreams({
      connection,
      sharing,
      timeoutMs: TIMEOUT_MS,
      pauseMs: { there: RETRY_DELAY_MS, absent: FAILURE_PAUSE_MS },
      make: async (manager, isCluster) =>
        await makeStream(
          manager,
          {
            name: this.#stream,
            subjects: [connection.subject("kept", ">")],
            retention: RetentionPolicy.Limits,
            storage: StorageType.File,
            discard: DiscardPolicy.Old,
            max_age: RETENTION_MS * 1e6,
            max_msgs_per_subject: 1,
          },
          STREAM_BYTES,
          isCluster,
        ),
    });
    connection.onChange(() => this.#probe());
    this.#probe();
  }

  async put(name: string, record: Uint8Array): Promise<void> {
    if (performance.now() < this.#fullUntil) return;
    const packed = await pack(record);
    await this.#attempt(async (manager) => {
      const [first = packed, ...rest] = splitBytes(packed, CHUNK_BYTES);
      const count = 1 + rest.length;
      if (record.length > MAX_BYTES || count > MAX_CHUNKS) {
        this.#logger.debug({ name, bytes: record.length }, "fleet: a record is too long for other machines");
        return;
      }
      const jetstream = manager.jetstream();
      const publish = async (index: number, data: Uint8Array): Promise<void> =>
        void (await jetstream.publish(this.#subject(name, index), data, { timeout: TIMEOUT_MS, retries: 0 }));
      try {
        // The first chunk is written last: it makes the record visible.
        for (const [index, chunk] of rest.entries()) await publish(index + 1, chunk);
        await publish(0, Buffer.concat([Uint8Array.of(count), first]));
      } catch (error) {
        if (codeOf(error) !== undefined) this.#fullUntil = performance.now() + FAILURE_PAUSE_MS;
        throw error;
      }
      if (this.#sharing.recovered("responses"))
        this.#logger.info("fleet: responses are kept for all machines again");
    });
  }

  async get(name: string): Promise<Uint8Array | RecordsUnreachable | undefined> {
    return await this.#attempt(async (manager) => {
      const [head, isErased] = await Promise.all([
        this.#message(manager, this.#subject(name, 0)),
        this.#wasErased(manager, name),
      ]);
      const count = head?.data[0] ?? 0;
      if (isErased || !head || count === 0 || count > MAX_CHUNKS) return undefined;
      const rest = await Promise.all(
        Array.from({ length: count - 1 }, (_, index) =>
          this.#message(manager, this.#subject(name, index + 1)),
        ),
      );
      // The stream evicts the oldest chunks first.
      const found = rest.filter((chunk) => chunk !== undefined);
      if (found.length < rest.length) return undefined;
      const packed = Buffer.concat([head.data.subarray(HEAD_BYTES), ...found.map(({ data }) => data)]);
      return await unpack(packed, { maxOutputLength: MAX_BYTES }).catch(() => undefined);
    });
  }

  async erase(name: string): Promise<RecordsUnreachable | undefined> {
    const failure = await this.#attempt(async (manager): Promise<undefined> => {
      // Marked as erased first, so that the record is gone whatever happens next.
      const { seq } = await manager
        .jetstream()
        .publish(this.#subject(name, ERASED), "", { timeout: TIMEOUT_MS, retries: 0 });
      await this.#remove(manager, name, seq);
    });
    // A machine that has never reached a server has stored nothing there.
    return this.#streams.exist === undefined ? undefined : failure;
  }

  async isErased(name: string): Promise<boolean | RecordsUnreachable> {
    return (await this.#attempt((manager) => this.#wasErased(manager, name))) ?? false;
  }

  /** Also removes the chunks that remain if the machine that erased the record was interrupted. */
  async #wasErased(manager: JetStreamManager, name: string): Promise<boolean> {
    const erasedAt = await this.#message(manager, this.#subject(name, ERASED));
    if (erasedAt === undefined) return false;
    const filter = { subjects_filter: this.#subject(name, "*") };
    const { state } = await manager.streams.info(this.#stream, filter);
    if (Object.keys(state.subjects ?? {}).length > 1) await this.#remove(manager, name, erasedAt.seq);
    return true;
  }

  /** Removes the chunks of a record that are older than its erased mark. */
  async #remove(manager: JetStreamManager, name: string, erasedAt: number): Promise<void> {
    const { info } = this.#connection.nats ?? {};
    await removeMessages(manager, info, this.#stream, this.#subject(name, "*"), erasedAt);
  }

  #subject(name: string, part: number | string): string {
    return this.#connection.subject("kept", name, String(part));
  }

  async #message(manager: JetStreamManager, subject: string): Promise<StoredMsg | undefined> {
    try {
      return (await manager.streams.getMessage(this.#stream, { last_by_subj: subject })) ?? undefined;
    } catch (error) {
      if (codeOf(error) === NO_MESSAGE) return undefined;
      throw error;
    }
  }

  /** Returns undefined if the fleet stores no records. Logs failures once. */
  async #attempt<Result>(
    action: (manager: JetStreamManager) => Promise<Result>,
  ): Promise<Result | RecordsUnreachable | undefined> {
    const { nats } = this.#connection;
    if (!nats) return this.#unreachable(undefined);
    if (performance.now() < this.#pausedUntil) return this.#unreachable(this.#lastError);
    try {
      return await this.#streams.use(nats, action);
    } catch (error) {
      this.#lastError = error;
      // A server that reports an error is reachable.
      if (codeOf(error) === undefined) this.#pausedUntil = performance.now() + FAILURE_PAUSE_MS;
      this.#sharing.failed("responses", error);
      return this.#unreachable(error);
    }
  }

  #unreachable(error: unknown): RecordsUnreachable | undefined {
    if (this.#streams.exist === false) return undefined;
    const pausedMs = Math.max(RETRY_DELAY_MS, this.#pausedUntil - performance.now());
    return new RecordsUnreachable(unreachableReason(error, this.#connection), Math.ceil(pausedMs / 1000));
  }

  /** Checks early whether the fleet has JetStream. */
  #probe(): void {
    const { nats } = this.#connection;
    this.#pausedUntil = 0;
    this.#fullUntil = 0;
    if (nats && !this.#streams.exist) this.#streams.ready(nats).catch(() => undefined);
  }
}
