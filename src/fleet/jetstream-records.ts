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
import { codeOf, removeMessages, unreachableReason } from "./jetstream/jetstream-errors.ts";
import { makeStream, PreparedStreams, type SharingLog } from "./jetstream/streams.ts";

/** How long OpenAI's service keeps responses. */
const KEPT_MS = 30 * 24 * 60 * 60 * 1000;
/** Bytes on the NATS server's disk; the oldest records make room. Less where an account allows less. */
const STREAM_BYTES = [512, 128, 32].map((mebibytes) => mebibytes * 1024 * 1024);
/** Of a message, which the server limits to 1 MiB unless it is told otherwise. */
const PIECE_BYTES = 512 * 1024;
const MAX_PIECES = 32;
/** A record that is longer stays on its machine. */
const MAX_BYTES = 32 * 1024 * 1024;
/** An answer waits this long for the place of records, and after a failure none does for a while. */
const TIMEOUT_MS = 2000;
const PAUSE_MS = 10_000;
/** Before it is tried again where it will be soon: the connection is lost, or a cluster has no leader. */
const RETRY_MS = 1000;
const NO_MESSAGE = 10_037;
/** Bytes before the first piece: how many pieces there are. */
const HEAD_BYTES = 1;
/** In place of a piece's number: the record is erased. */
const ERASED = "erased";

const pack = promisify(gzip);
const unpack = promisify(gunzip);

/** Records in a stream of JetStream, with a bound by size and age. */
export class JetStreamRecords implements SharedRecords {
  readonly #connection: FleetConnection;
  readonly #stream: string;
  readonly #logger: Pick<Logger, "debug" | "info">;
  readonly #sharing: SharingLog;
  readonly #streams: PreparedStreams;
  #pausedUntil = 0;
  /** Of the last failure. */
  #why: unknown;
  /** Records are read while there is no room for more. */
  #fullUntil = 0;

  constructor(
    connection: FleetConnection,
    prefix: string,
    logger: Pick<Logger, "debug" | "info">,
    sharing: SharingLog,
  ) {
    this.#connection = connection;
    this.#stream = `${prefix.replaceAll(".", "_")}_responses`;
    this.#logger = logger;
    this.#sharing = sharing;
    this.#streams = new PreparedStreams({
      connection,
      sharing,
      timeoutMs: TIMEOUT_MS,
      pauseMs: { there: RETRY_MS, absent: PAUSE_MS },
      make: async (manager, isCluster) =>
        await makeStream(
          manager,
          {
            name: this.#stream,
            subjects: [connection.subject("kept", ">")],
            retention: RetentionPolicy.Limits,
            storage: StorageType.File,
            discard: DiscardPolicy.Old,
            max_age: KEPT_MS * 1e6,
            max_msgs_per_subject: 1,
          },
          STREAM_BYTES,
          isCluster,
        ),
    });
    connection.onChange(() => this.#look());
    this.#look();
  }

  async put(name: string, record: Uint8Array): Promise<void> {
    if (performance.now() < this.#fullUntil) return;
    const packed = await pack(record);
    await this.#attempt(async (manager) => {
      const count = Math.max(1, Math.ceil(packed.length / PIECE_BYTES));
      if (record.length > MAX_BYTES || count > MAX_PIECES) {
        this.#logger.debug({ name, bytes: record.length }, "fleet: a record is too long for other machines");
        return;
      }
      const pieces = Array.from({ length: count }, (_, index) =>
        packed.subarray(index * PIECE_BYTES, (index + 1) * PIECE_BYTES),
      );
      const jetstream = manager.jetstream();
      const publish = async (index: number, data: Uint8Array): Promise<void> =>
        void (await jetstream.publish(this.#subject(name, index), data, { timeout: TIMEOUT_MS, retries: 0 }));
      try {
        // The first one last: with it the record is there.
        for (const [index, piece] of pieces.entries()) if (index > 0) await publish(index, piece);
        await publish(0, Buffer.concat([Uint8Array.of(count), pieces[0] ?? new Uint8Array()]));
      } catch (error) {
        if (codeOf(error) !== undefined) this.#fullUntil = performance.now() + PAUSE_MS;
        throw error;
      }
      if (this.#sharing.works("responses"))
        this.#logger.info("fleet: responses are kept for all machines again");
    });
  }

  async get(name: string): Promise<Uint8Array | RecordsUnreachable | undefined> {
    return await this.#attempt(async (manager) => {
      const [head, isErased] = await Promise.all([
        this.#read(manager, this.#subject(name, 0)),
        this.#wasErased(manager, name),
      ]);
      if (isErased) return undefined;
      const count = head?.[0] ?? 0;
      if (head === undefined || count === 0 || count > MAX_PIECES) return undefined;
      const rest = await Promise.all(
        Array.from({ length: count - 1 }, (_, index) => this.#read(manager, this.#subject(name, index + 1))),
      );
      // The oldest pieces make room first.
      const found = rest.filter((piece) => piece !== undefined);
      if (found.length < rest.length) return undefined;
      const packed = Buffer.concat([head.subarray(HEAD_BYTES), ...found]);
      return await unpack(packed, { maxOutputLength: MAX_BYTES }).catch(() => undefined);
    });
  }

  async erase(name: string): Promise<RecordsUnreachable | undefined> {
    const failure = await this.#attempt(async (manager): Promise<undefined> => {
      // First: whatever happens after it, the record is not there any more.
      const { seq } = await manager
        .jetstream()
        .publish(this.#subject(name, ERASED), "", { timeout: TIMEOUT_MS, retries: 0 });
      await this.#remove(manager, name, seq);
    });
    // Nothing of a machine that has never reached the server is elsewhere.
    return this.#streams.areThere === undefined ? undefined : failure;
  }

  async isErased(name: string): Promise<boolean | RecordsUnreachable> {
    return (await this.#attempt((manager) => this.#wasErased(manager, name))) ?? false;
  }

  /** Also removes what is left of it, if the machine that erased it was gone in the middle. */
  async #wasErased(manager: JetStreamManager, name: string): Promise<boolean> {
    const mark = await this.#message(manager, this.#subject(name, ERASED));
    if (mark === undefined) return false;
    const filter = { subjects_filter: this.#subject(name, "*") };
    const { state } = await manager.streams.info(this.#stream, filter);
    if (Object.keys(state.subjects ?? {}).length > 1) await this.#remove(manager, name, mark.seq);
    return true;
  }

  /** Removes the pieces of a record that are older than the mark which says that it is erased. */
  async #remove(manager: JetStreamManager, name: string, mark: number): Promise<void> {
    const { info } = this.#connection.nats ?? {};
    await removeMessages(manager, info, this.#stream, this.#subject(name, "*"), mark);
  }

  #subject(name: string, part: number | string): string {
    return this.#connection.subject("kept", name, String(part));
  }

  async #read(manager: JetStreamManager, subject: string): Promise<Uint8Array | undefined> {
    return (await this.#message(manager, subject))?.data;
  }

  async #message(manager: JetStreamManager, subject: string): Promise<StoredMsg | undefined> {
    try {
      return (await manager.streams.getMessage(this.#stream, { last_by_subj: subject })) ?? undefined;
    } catch (error) {
      if (codeOf(error) === NO_MESSAGE) return undefined;
      throw error;
    }
  }

  /** Undefined where there is no place for records. Tells once that they are not kept. */
  async #attempt<Result>(
    action: (manager: JetStreamManager) => Promise<Result>,
  ): Promise<Result | RecordsUnreachable | undefined> {
    const { nats } = this.#connection;
    if (!nats) return this.#away(undefined);
    if (performance.now() < this.#pausedUntil) return this.#away(this.#why);
    try {
      return await this.#streams.use(nats, action);
    } catch (error) {
      this.#why = error;
      // A server that says what is wrong is there.
      if (codeOf(error) === undefined) this.#pausedUntil = performance.now() + PAUSE_MS;
      this.#sharing.failed("responses", error);
      return this.#away(error);
    }
  }

  #away(error: unknown): RecordsUnreachable | undefined {
    if (this.#streams.areThere === false) return undefined;
    const pausedMs = Math.max(RETRY_MS, this.#pausedUntil - performance.now());
    return new RecordsUnreachable(unreachableReason(error, this.#connection), Math.ceil(pausedMs / 1000));
  }

  /** Learns whether the fleet has JetStream, before it matters. */
  #look(): void {
    const { nats } = this.#connection;
    this.#pausedUntil = 0;
    this.#fullUntil = 0;
    if (nats && !this.#streams.areThere) this.#streams.ready(nats).catch(() => undefined);
  }
}
