import { promisify } from "node:util";
import { gunzip, gzip } from "node:zlib";
import {
  type JetStreamManager,
  jetstreamManager,
  RetentionPolicy,
  DiscardPolicy,
  StorageType,
} from "@nats-io/jetstream";
import type { NatsConnection } from "@nats-io/transport-node";
import type { Logger } from "pino";
import type { SharedRecords } from "../dialects/shared-records.ts";
import { toError } from "../errors/to-error.ts";
import type { FleetConnection } from "./fleet-connection.ts";

/** How long OpenAI's service keeps responses. */
const KEPT_MS = 30 * 24 * 60 * 60 * 1000;
/** Bytes on the NATS server's disk; the oldest records make room. Less where an account allows less. */
const STREAM_BYTES = [512, 128, 32].map((mebibytes) => mebibytes * 1024 * 1024);
/** Of a message, which the server limits to 1 MiB unless it is told otherwise. */
const PIECE_BYTES = 512 * 1024;
const MOST_PIECES = 32;
/** A record that is longer stays on its machine. */
const MOST_BYTES = 32 * 1024 * 1024;
/** An answer waits this long for the place of records, and after a failure none does for a while. */
const TIMEOUT_MS = 2000;
const PAUSE_MS = 10_000;
/** Copies in a cluster: one server may fail. */
const CLUSTER_REPLICAS = 3;
const NO_MESSAGE = 10_037;
/** Bytes before the first piece: how many pieces there are. */
const HEAD_BYTES = 1;

const pack = promisify(gzip);
const unpack = promisify(gunzip);

/** Records in a stream of JetStream, with a bound by size and age. */
export class JetStreamRecords implements SharedRecords {
  readonly #connection: FleetConnection;
  readonly #stream: string;
  readonly #logger: Pick<Logger, "warn" | "debug" | "info">;
  /** With the connection that it belongs to. */
  #ready: { readonly nats: NatsConnection; readonly manager: Promise<JetStreamManager> } | undefined;
  #pausedUntil = 0;
  #isFailing = false;

  constructor(connection: FleetConnection, prefix: string, logger: Pick<Logger, "warn" | "debug" | "info">) {
    this.#connection = connection;
    this.#stream = `${prefix.replaceAll(".", "_")}_responses`;
    this.#logger = logger;
  }

  async put(name: string, record: Uint8Array): Promise<void> {
    await this.#attempt(async (manager) => {
      const packed = await pack(record);
      const count = Math.max(1, Math.ceil(packed.length / PIECE_BYTES));
      if (record.length > MOST_BYTES || count > MOST_PIECES) {
        this.#logger.debug({ name, bytes: record.length }, "fleet: a record is too long for other machines");
        return;
      }
      const pieces = Array.from({ length: count }, (_, index) =>
        packed.subarray(index * PIECE_BYTES, (index + 1) * PIECE_BYTES),
      );
      const jetstream = manager.jetstream();
      const publish = async (index: number, data: Uint8Array): Promise<void> =>
        void (await jetstream.publish(this.#subject(name, index), data, { timeout: TIMEOUT_MS, retries: 0 }));
      // The first one last: with it the record is there.
      for (const [index, piece] of pieces.entries()) if (index > 0) await publish(index, piece);
      await publish(0, Buffer.concat([Uint8Array.of(count), pieces[0] ?? new Uint8Array()]));
    });
  }

  async get(name: string): Promise<Uint8Array | undefined> {
    return await this.#attempt(async (manager) => {
      const head = await this.#read(manager, this.#subject(name, 0));
      const count = head?.[0] ?? 0;
      if (head === undefined || count === 0 || count > MOST_PIECES) return undefined;
      const rest = await Promise.all(
        Array.from({ length: count - 1 }, (_, index) => this.#read(manager, this.#subject(name, index + 1))),
      );
      // The oldest pieces make room first.
      const found = rest.filter((piece) => piece !== undefined);
      if (found.length < rest.length) return undefined;
      const packed = Buffer.concat([head.subarray(HEAD_BYTES), ...found]);
      return await unpack(packed, { maxOutputLength: MOST_BYTES }).catch(() => undefined);
    });
  }

  async erase(name: string): Promise<void> {
    await this.#attempt(async (manager) => {
      await manager.streams.purge(this.#stream, { filter: this.#subject(name, "*") });
      await manager
        .jetstream()
        .publish(this.#subject(name, "erased"), "", { timeout: TIMEOUT_MS, retries: 0 });
    });
  }

  async isErased(name: string): Promise<boolean> {
    const found = await this.#attempt((manager) => this.#read(manager, this.#subject(name, "erased")));
    return found !== undefined;
  }

  #subject(name: string, part: number | string): string {
    return this.#connection.subject("kept", name, String(part));
  }

  async #read(manager: JetStreamManager, subject: string): Promise<Uint8Array | undefined> {
    try {
      const message = await manager.streams.getMessage(this.#stream, { last_by_subj: subject });
      return message?.data;
    } catch (error) {
      if (codeOf(error) === NO_MESSAGE) return undefined;
      throw error;
    }
  }

  /** Undefined while there is no place for records. Tells once that there is none, and once that there is again. */
  async #attempt<Result>(
    action: (manager: JetStreamManager) => Promise<Result>,
  ): Promise<Result | undefined> {
    const { nats } = this.#connection;
    if (!nats || performance.now() < this.#pausedUntil) return undefined;
    try {
      if (this.#ready?.nats !== nats) this.#ready = { nats, manager: this.#prepare(nats) };
      const result = await action(await this.#ready.manager);
      if (this.#isFailing) this.#logger.info("fleet: responses are kept for all machines again");
      this.#isFailing = false;
      return result;
    } catch (error) {
      // The stream may have been removed, or its server may have begun anew.
      this.#ready = undefined;
      this.#pausedUntil = performance.now() + PAUSE_MS;
      if (!this.#isFailing)
        this.#logger.warn(
          `fleet: this machine keeps responses for itself alone, since JetStream does not: ${toError(error).message}`,
        );
      this.#isFailing = true;
      return undefined;
    }
  }

  /** The stream, which the first machine makes. */
  async #prepare(nats: NatsConnection): Promise<JetStreamManager> {
    const manager = await jetstreamManager(nats, { timeout: TIMEOUT_MS });
    const isThere = await manager.streams.info(this.#stream).then(
      () => true,
      () => false,
    );
    if (!isThere) await this.#create(manager, nats.info?.cluster === undefined ? [1] : [CLUSTER_REPLICAS, 1]);
    return manager;
  }

  async #create(manager: JetStreamManager, copies: readonly number[]): Promise<void> {
    let failure: unknown;
    const sizes = copies.flatMap((replicas) => STREAM_BYTES.map((bytes) => ({ replicas, bytes })));
    for (const { replicas, bytes } of sizes) {
      try {
        await manager.streams.add({
          name: this.#stream,
          subjects: [this.#connection.subject("kept", ">")],
          retention: RetentionPolicy.Limits,
          storage: StorageType.File,
          discard: DiscardPolicy.Old,
          max_bytes: bytes,
          max_age: KEPT_MS * 1e6,
          max_msgs_per_subject: 1,
          num_replicas: replicas,
        });
        return;
      } catch (error) {
        failure = error;
      }
    }
    throw failure;
  }
}

/** JetStream's own number of an error. */
function codeOf(error: unknown): number | undefined {
  return error instanceof Error && "code" in error && typeof error.code === "number" ? error.code : undefined;
}
