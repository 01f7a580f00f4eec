import type { Logger } from "pino";
import { BatchDesk, batchEnded } from "../../batches/batch-intake.ts";
import { type BatchRoom, removeExpired } from "../../batches/batch-service.ts";
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
import type { LinePool } from "../../batches/line-scheduler.ts";
import type { Config } from "../../config/schema.ts";
import { ServiceError } from "../../errors/service-error.ts";
import type { ServiceEvents } from "../../events/service-events.ts";
import { Answers } from "./answer-store.ts";
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
  /** What this machine has had before, and has where the fleet has no place for batches. */
  readonly own: BatchRoom;
}

type Desk = Omit<Batches, "maxFileBytes" | "maxLines">;

/** Files and batches of the fleet, where it has a place for them, and those of this machine; ids tell which is which. */
export class FleetBatches implements Batches {
  readonly #options: FleetBatchesOptions;
  readonly #own: BatchRoom;
  readonly #place: JetStreamStore;
  #shared: SharedBatches | undefined;

  constructor(options: FleetBatchesOptions) {
    this.#options = options;
    this.#own = options.own;
    this.#place = options.place;
  }

  get maxFileBytes(): number {
    return this.#own.maxFileBytes;
  }

  get maxLines(): number {
    return this.#own.maxLines;
  }

  /** Batches that are not over, without those that another machine leads. */
  get running(): number {
    return this.#own.running + (this.#shared?.running ?? 0);
  }

  async start(runLine: RunLine): Promise<void> {
    await this.#own.start(runLine);
    this.#shared = new SharedBatches({ ...this.#options, pool: this.#own.pool, runLine });
  }

  /** Removes what the fleet has kept for long enough. */
  async sweep(): Promise<void> {
    await this.#shared?.sweep();
  }

  async stop(): Promise<void> {
    await Promise.all([this.#own.stop(), this.#shared?.stop()]);
  }

  async close(): Promise<void> {
    await Promise.all([this.#own.close(), this.#shared?.stop()]);
  }

  async receive(pieces: AsyncIterable<Uint8Array> | Iterable<Uint8Array>): Promise<ReceivedFile> {
    const home = await this.#place.home();
    return await (home === "machine" ? this.#own : this.#desk()).receive(pieces);
  }

  async file(viewer: Viewer, id: string, purposes: readonly FilePurpose[]): Promise<StoredFile> {
    return await this.#of(id).file(viewer, id, purposes);
  }

  async files(query: PageQuery & { readonly purposes: readonly FilePurpose[] }): Promise<Page<StoredFile>> {
    return await this.#page(query, async (desk, each) => await desk.files({ ...query, ...each }));
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
    return await this.#page(query, async (desk, each) => await desk.batches({ ...query, ...each }));
  }

  async cancel(viewer: Viewer, api: string, id: string): Promise<Batch> {
    return await this.#of(id).cancel(viewer, api, id);
  }

  async deleteBatch(viewer: Viewer, api: string, id: string): Promise<void> {
    await this.#of(id).deleteBatch(viewer, api, id);
  }

  #of(id: string): Desk {
    return isSharedId(id) ? this.#desk() : this.#own;
  }

  #desk(): Desk {
    if (this.#shared) return this.#shared.desk;
    throw new ServiceError("shutting_down", "The daemon has not started yet.");
  }

  /** The machine's own are a list of their own, behind the fleet's where the newest come first. */
  async #page<Item extends { readonly id: string }>(
    query: PageQuery,
    ask: (desk: Desk, query: PageQuery) => Promise<Page<Item>>,
  ): Promise<Page<Item>> {
    if ((await this.#place.home()) === "machine") return await ask(this.#own, query);
    const { limit, descending, after, before } = query;
    const whole = { ...query, after: undefined, before: undefined };
    const shared = this.#desk();
    const [first, second] = descending ? [shared, this.#own] : [this.#own, shared];
    const isOf = (desk: Desk, id: string): boolean => (desk === shared) === isSharedId(id);
    const isBackward = after === undefined && before !== undefined;
    const cursor = after ?? before;
    const [start, rest] = isBackward ? [second, first] : [first, second];
    if (cursor !== undefined && isOf(rest, cursor)) return await ask(rest, query);
    const page = await ask(start, query);
    if (page.items.length === limit) {
      const hasMore = page.hasMore || (await ask(rest, { ...whole, limit: 1 })).items.length > 0;
      return { ...page, hasMore };
    }
    // What is right before the first of the second list is the end of the first one.
    const further = await ask(rest, {
      ...whole,
      descending: isBackward ? !descending : descending,
      limit: limit - page.items.length,
    });
    const items = isBackward
      ? further.items.toReversed().concat(page.items)
      : [...page.items, ...further.items];
    return { items, hasMore: further.hasMore };
  }
}

const SWEEP_MS = 10 * 60_000;

interface SharedBatchesOptions {
  readonly config: Pick<Config, "batches" | "http">;
  readonly formats: Readonly<Record<string, BatchFormat>>;
  readonly events: Pick<ServiceEvents, "emit">;
  readonly logger: Pick<Logger, "info" | "warn" | "error">;
  /** Told when a line is done here. */
  readonly onLine: (outcome: RunOutcome) => void;
  readonly place: JetStreamStore;
  /** Of this machine, for one run of its daemon. */
  readonly selfId: string;
  readonly models: BatchModels;
  /** Runs the lines of this machine. */
  readonly pool: LinePool;
  readonly runLine: RunLine;
  /** Unix milliseconds. */
  readonly now?: () => number;
}

/** Files and batches that all machines share, with this machine's work on them. */
class SharedBatches {
  readonly desk: BatchDesk;
  readonly #options: SharedBatchesOptions;
  readonly #leases: Leases;
  readonly #store: SharedStore;
  readonly #folder: ChunkFolder;
  readonly #answers: Answers;
  readonly #runner: SharedRunner;
  readonly #sweep: NodeJS.Timeout;

  constructor(options: SharedBatchesOptions) {
    const { config, place, selfId, events, logger, now = Date.now } = options;
    this.#options = options;
    this.#leases = new Leases(place, selfId);
    this.#answers = new Answers(place);
    this.#folder = new ChunkFolder(place);
    this.#store = new SharedStore({ place, answers: this.#answers, leases: this.#leases, now });
    const limits = { maxLines: config.batches.max_lines, maxLineBytes: config.http.body_limit };
    const parts = { store: this.#store, folder: this.#folder, now };
    this.#runner = new SharedRunner({
      ...options,
      ...parts,
      answers: this.#answers,
      leases: this.#leases,
      refusals: new ReportedRefusals(place, this.#answers),
      runs: new LineRuns(place),
      limits,
      onEnd: (batch) => events.emit(batchEnded(batch)),
    });
    const { max_total_size: ownBytes } = config.batches;
    this.desk = new BatchDesk({
      ...parts,
      // Zero refuses all; any other bound is that of the machine's own disk.
      config: { ...config.batches, max_total_size: ownBytes && Number.POSITIVE_INFINITY },
      events,
      runner: this.#runner,
      newId: newSharedId,
    });
    this.#sweep = setInterval(() => {
      this.sweep().catch((error: unknown) =>
        logger.warn({ err: error }, "Expired files of the fleet's batches stay for now"),
      );
    }, SWEEP_MS).unref();
  }

  /** Batches that are led from here. */
  get running(): number {
    return this.#runner.running;
  }

  async stop(): Promise<void> {
    clearInterval(this.#sweep);
    await this.#runner.stop();
  }

  /** Removes what is too old, and what machines have left that were killed; one machine does it. */
  async sweep(): Promise<void> {
    const { place, config, now = Date.now } = this.#options;
    if ((await place.home()) !== "fleet" || !(await this.#leases.hold("sweep", true))) return;
    await removeExpired({ store: this.#store, folder: this.#folder }, now(), config.batches.retention);
    const known = new Set((await this.#store.allFiles()).map(({ id }) => id));
    await this.#folder.sweep((id) => known.has(id), now());
    for (const id of await this.#store.unled()) await this.#leases.hold(id, true);
    // In this order: a batch that begins meanwhile has a lease before it has answers.
    const answered = await this.#answers.batches();
    const open = new Set(await this.#leases.ids());
    for (const id of answered) if (!open.has(id)) await this.#answers.remove(id);
  }
}
