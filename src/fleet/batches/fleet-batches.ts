import type { Logger } from "pino";
import { BatchService, batchEnded } from "../../batches/batch-intake.ts";
import { type LocalBatches, removeExpired } from "../../batches/batch-service.ts";
import type {
  Batches,
  FileContent,
  NewBatch,
  Page,
  PageQuery,
  ReceivedFile,
} from "../../batches/batch-store.ts";
import type {
  Batch,
  BatchFormat,
  FilePurpose,
  RunLine,
  RunOutcome,
  StoredFile,
  Viewer,
} from "../../batches/batch.ts";
import type { LineScheduler } from "../../batches/line-scheduler.ts";
import type { Config } from "../../config/schema.ts";
import { ServiceError } from "../../errors/service-error.ts";
import type { ServiceEvents } from "../../events/service-events.ts";
import { AnswerStore } from "./answer-store.ts";
import type { BatchModels } from "./batch-models.ts";
import { ReportedRefusals } from "./batch-notices.ts";
import { isSharedId, newSharedId } from "./batch-record.ts";
import { ChunkFolder } from "./chunked-files.ts";
import type { JetStreamStore } from "./jetstream-store.ts";
import { Leases } from "./leases.ts";
import { LineRuns } from "./line-runs.ts";
import { SharedRunner } from "./shared-runner.ts";
import { SharedStore } from "./shared-store.ts";

export interface FleetBatchesOptions extends Omit<SharedBatchesOptions, "pool" | "runLine"> {
  /** Batches of this machine, used for older items and where the fleet has no JetStream. */
  readonly local: LocalBatches;
}

type ItemStore = Omit<Batches, "maxFileBytes" | "maxLines">;

/** Files and batches of the fleet, together with those of this machine; ids distinguish them. */
export class FleetBatches implements Batches {
  readonly #options: FleetBatchesOptions;
  readonly #local: LocalBatches;
  readonly #jetStream: JetStreamStore;
  #shared: SharedBatches | undefined;

  constructor(options: FleetBatchesOptions) {
    this.#options = options;
    this.#local = options.local;
    this.#jetStream = options.jetStream;
  }

  get maxFileBytes(): number {
    return this.#local.maxFileBytes;
  }

  get maxLines(): number {
    return this.#local.maxLines;
  }

  /** Number of unfinished batches, except those that other machines lead. */
  get running(): number {
    return this.#local.running + (this.#shared?.running ?? 0);
  }

  async start(runLine: RunLine): Promise<void> {
    await this.#local.start(runLine);
    this.#shared = new SharedBatches({ ...this.#options, pool: this.#local.scheduler, runLine });
  }

  /** Removes expired items of the fleet. */
  async sweep(): Promise<void> {
    await this.#shared?.sweep();
  }

  async stop(): Promise<void> {
    await Promise.all([this.#local.stop(), this.#shared?.stop()]);
  }

  async close(): Promise<void> {
    await Promise.all([this.#local.close(), this.#shared?.stop()]);
  }

  async receive(chunks: AsyncIterable<Uint8Array> | Iterable<Uint8Array>): Promise<ReceivedFile> {
    const primaryStore = await this.#jetStream.primaryStore();
    return await (primaryStore === "machine" ? this.#local : this.#sharedService()).receive(chunks);
  }

  async file(viewer: Viewer, id: string, purposes: readonly FilePurpose[]): Promise<StoredFile> {
    return await this.#of(id).file(viewer, id, purposes);
  }

  async files(query: PageQuery & { readonly purposes: readonly FilePurpose[] }): Promise<Page<StoredFile>> {
    return await this.#page(query, async (service, each) => await service.files({ ...query, ...each }));
  }

  async content(viewer: Viewer, id: string, purposes: readonly FilePurpose[]): Promise<FileContent> {
    return await this.#of(id).content(viewer, id, purposes);
  }

  async deleteFile(viewer: Viewer, id: string, purposes: readonly FilePurpose[]): Promise<void> {
    await this.#of(id).deleteFile(viewer, id, purposes);
  }

  async create(batch: NewBatch): Promise<Batch> {
    return await this.#of(batch.inputFile.id).create(batch);
  }

  async batch(viewer: Viewer, api: string, id: string): Promise<Batch> {
    return await this.#of(id).batch(viewer, api, id);
  }

  async batches(query: PageQuery & { readonly api: string }): Promise<Page<Batch>> {
    return await this.#page(query, async (service, each) => await service.batches({ ...query, ...each }));
  }

  async cancel(viewer: Viewer, api: string, id: string): Promise<Batch> {
    return await this.#of(id).cancel(viewer, api, id);
  }

  async deleteBatch(viewer: Viewer, api: string, id: string): Promise<void> {
    await this.#of(id).deleteBatch(viewer, api, id);
  }

  #of(id: string): ItemStore {
    return isSharedId(id) ? this.#sharedService() : this.#local;
  }

  #sharedService(): ItemStore {
    if (this.#shared) return this.#shared.service;
    throw new ServiceError("shutting_down", "The daemon has not started yet.");
  }

  /** Lists local items and the fleet's as one list; the fleet's count as newer. */
  async #page<Item extends { readonly id: string }>(
    query: PageQuery,
    ask: (service: ItemStore, query: PageQuery) => Promise<Page<Item>>,
  ): Promise<Page<Item>> {
    if ((await this.#jetStream.primaryStore()) === "machine") return await ask(this.#local, query);
    const { limit, descending, after, before } = query;
    const firstPageQuery = { ...query, after: undefined, before: undefined };
    const shared = this.#sharedService();
    const [first, second] = descending ? [shared, this.#local] : [this.#local, shared];
    const isOf = (service: ItemStore, id: string): boolean => (service === shared) === isSharedId(id);
    const isBackward = after === undefined && before !== undefined;
    const cursor = after ?? before;
    const [start, other] = isBackward ? [second, first] : [first, second];
    if (cursor !== undefined && isOf(other, cursor)) return await ask(other, query);
    const page = await ask(start, query);
    if (page.items.length === limit) {
      const hasMore = page.hasMore || (await ask(other, { ...firstPageQuery, limit: 1 })).items.length > 0;
      return { ...page, hasMore };
    }
    // The items right before the first of the second list are the last of the first list.
    const rest = await ask(other, {
      ...firstPageQuery,
      descending: isBackward ? !descending : descending,
      limit: limit - page.items.length,
    });
    const items = isBackward ? rest.items.toReversed().concat(page.items) : [...page.items, ...rest.items];
    return { items, hasMore: rest.hasMore };
  }
}

const SWEEP_INTERVAL_MS = 10 * 60_000;

interface SharedBatchesOptions {
  readonly config: Pick<Config, "batches" | "http">;
  readonly formats: Readonly<Record<string, BatchFormat>>;
  readonly events: Pick<ServiceEvents, "emit">;
  readonly logger: Pick<Logger, "info" | "warn" | "error">;
  /** Called when a line is done on this machine. */
  readonly onLine: (outcome: RunOutcome) => void;
  readonly jetStream: JetStreamStore;
  /** Id of this machine for one run of its daemon. */
  readonly selfId: string;
  readonly models: BatchModels;
  /** Runs the lines of this machine. */
  readonly pool: LineScheduler;
  readonly runLine: RunLine;
  /** Returns Unix milliseconds. */
  readonly now?: () => number;
}

/** Files and batches shared by all machines, and this machine's work on them. */
class SharedBatches {
  readonly service: BatchService;
  readonly #options: SharedBatchesOptions;
  readonly #leases: Leases;
  readonly #store: SharedStore;
  readonly #folder: ChunkFolder;
  readonly #answers: AnswerStore;
  readonly #runner: SharedRunner;
  readonly #sweep: NodeJS.Timeout;

  constructor(options: SharedBatchesOptions) {
    const { config, jetStream, selfId, events, logger, now = Date.now } = options;
    this.#options = options;
    this.#leases = new Leases(jetStream, selfId);
    this.#answers = new AnswerStore(jetStream);
    this.#folder = new ChunkFolder(jetStream);
    this.#store = new SharedStore({ jetStream, answers: this.#answers, leases: this.#leases, now });
    const limits = { maxLines: config.batches.max_lines, maxLineBytes: config.http.body_limit };
    const parts = { store: this.#store, folder: this.#folder, now };
    this.#runner = new SharedRunner({
      ...options,
      ...parts,
      answers: this.#answers,
      leases: this.#leases,
      refusals: new ReportedRefusals(jetStream, this.#answers),
      runs: new LineRuns(jetStream),
      limits,
      onEnd: (batch) => events.emit(batchEnded(batch)),
    });
    const { max_total_size: localLimit } = config.batches;
    this.service = new BatchService({
      ...parts,
      // Zero disables uploads; any other limit concerns only this machine's disk.
      config: { ...config.batches, max_total_size: localLimit && Number.POSITIVE_INFINITY },
      events,
      runner: this.#runner,
      newId: newSharedId,
    });
    this.#sweep = setInterval(() => {
      this.sweep().catch((error: unknown) =>
        logger.warn({ err: error }, "Cannot remove expired files of the fleet's batches now"),
      );
    }, SWEEP_INTERVAL_MS).unref();
  }

  /** Number of batches that this machine leads. */
  get running(): number {
    return this.#runner.running;
  }

  async stop(): Promise<void> {
    clearInterval(this.#sweep);
    await this.#runner.stop();
  }

  /** Removes expired items, and what killed machines have left; one machine does it at a time. */
  async sweep(): Promise<void> {
    const { jetStream, config, now = Date.now } = this.#options;
    if ((await jetStream.primaryStore()) !== "fleet" || !(await this.#leases.acquire("sweep", true))) return;
    await removeExpired({ store: this.#store, folder: this.#folder }, now(), config.batches.retention);
    const known = new Set((await this.#store.allFiles()).map(({ id }) => id));
    await this.#folder.sweep((id) => known.has(id), now());
    for (const id of await this.#store.withoutLease()) await this.#leases.acquire(id, true);
    // In this order: a new batch has a lease before it has answers.
    const answered = await this.#answers.batches();
    const open = new Set(await this.#leases.ids());
    for (const id of answered) if (!open.has(id)) await this.#answers.remove(id);
  }
}
